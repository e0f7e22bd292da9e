package database

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/layouts/survey"
	"github.com/packfinderz/outbox/packfinderz/internal/env"
	"github.com/packfinderz/outbox/packfinderz/internal/outage"
)

// Statement is a statement that a program will run, with arguments of the right types.
type Statement struct {
	SQL  string
	Args []any
}

// undefinedTable is the SQLSTATE of a table that is not there.
const undefinedTable = "42P01"

// fitsTimeout bounds the check of the tables before the start.
const fitsTimeout = 10 * time.Second

// Ready returns why PostgreSQL could not run the statements, such as a missing table or right. It only plans them.
func Ready(ctx context.Context, pool *pgxpool.Pool, statements ...Statement) error {
	for _, statement := range statements {
		if _, err := pool.Exec(ctx, "EXPLAIN "+statement.SQL, statement.Args...); err != nil {
			return err
		}
	}
	return nil
}

// Fits does what Ready does, at the start. If the tables are not the sample's, and api migrate will not create these,
// it returns an env.ErrUsage. It only logs what may pass while the program waits, such as an outage.
func Fits(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger, statements ...Statement) error {
	ctx, cancel := context.WithTimeout(ctx, fitsTimeout)
	defer cancel()
	err := Ready(ctx, pool, statements...)
	var refused *pgconn.PgError
	switch {
	case errors.As(err, &refused) && refused.Code == undefinedTable:
		return missing(ctx, pool, log, refused.Message)
	case errors.As(err, &refused) && misfit(refused.Code):
		return fmt.Errorf("%w: the tables are not the sample's (%s): %s", env.ErrUsage, refused.Message, leftOut)
	case err != nil:
		log.Warn(outage.Reason("PostgreSQL", err)+"; waiting for it", "error", err)
	}
	return nil
}

const leftOut = "api migrate leaves out the sample's where others have their names; " +
	"give the sample a database of its own, or run your own program instead"

// missing says why a table is missing. The program waits for it only if api migrate would create it.
func missing(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger, message string) error {
	taken, err := TakenFromSample(ctx, pool)
	switch {
	case errors.Is(err, survey.ErrConflict):
		return fmt.Errorf("%w: %s, and api migrate will not make it: %w", env.ErrUsage, message, err)
	case len(taken) > 0:
		return fmt.Errorf("%w: the tables are not the sample's (%s; others have %s): %s",
			env.ErrUsage, message, strings.Join(taken, ", "), leftOut)
	}
	// A role without the right to read goose's table sees no more than this.
	log.Warn("a table of the sample is not there yet, and nothing can be done without it: run api migrate", "error", message)
	return nil
}

// misfit reports whether a SQLSTATE means that a statement can never run on these tables. Rights can still be granted.
func misfit(code string) bool {
	const syntaxOrAccess, dataException = "42", "22" // classes
	const insufficientPrivilege = "42501"
	return code != insufficientPrivilege && (strings.HasPrefix(code, syntaxOrAccess) || strings.HasPrefix(code, dataException))
}
