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

	"github.com/packfinderz/outbox/packfinderz/internal/env"
)

// Statement is one that a program will run, with arguments of the right types.
type Statement struct {
	SQL  string
	Args []any
}

// fitsTimeout bounds the look at the tables before the start.
const fitsTimeout = 10 * time.Second

// Fits asks PostgreSQL to plan statements, and runs none. Tables that have the sample's names and are somebody else's are an
// env.ErrUsage. Anything else may be mended while the program waits, and is only logged: a server that is away, a table that is not
// made yet.
func Fits(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger, statements ...Statement) error {
	ctx, cancel := context.WithTimeout(ctx, fitsTimeout)
	defer cancel()
	for _, statement := range statements {
		_, err := pool.Exec(ctx, "EXPLAIN "+statement.SQL, statement.Args...)
		var refused *pgconn.PgError
		switch {
		case errors.As(err, &refused) && misfit(refused.Code):
			return fmt.Errorf("%w: the tables are not the sample's (%s): api migrate leaves out the sample's where others have their names; "+
				"give the sample a database of its own, or run your own program instead", env.ErrUsage, refused.Message)
		case err != nil:
			log.Warn("PostgreSQL does not have the tables yet, or does not answer", "error", err)
			return nil
		}
	}
	return nil
}

// misfit is whether a SQLSTATE says that a statement will never do on these tables. Rights can still be granted.
func misfit(code string) bool {
	const syntaxOrAccess, dataException = "42", "22" // classes
	const insufficientPrivilege, undefinedTable = "42501", "42P01"
	return code != insufficientPrivilege && code != undefinedTable &&
		(strings.HasPrefix(code, syntaxOrAccess) || strings.HasPrefix(code, dataException))
}
