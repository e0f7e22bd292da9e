package migrations

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ErrTableExists says that the table is there and was not made by these migrations.
var ErrTableExists = errors.New("the table exists already and was not made by outbox")

// ErrElsewhere says that the search path leads to a table in another schema than that in which the migrations would make one.
var ErrElsewhere = errors.New("the search path leads to another schema")

// DB is a connection or a transaction.
type DB interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Begin(ctx context.Context) (pgx.Tx, error)
}

// RefuseElsewhere refuses to make a table in the first schema of the search path while programs find one in a later: it
// would hide that one, with its events.
func RefuseElsewhere(ctx context.Context, db DB, table string) error {
	var found string
	err := db.QueryRow(ctx, `SELECT n.nspname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
		WHERE c.oid = to_regclass($1) AND n.nspname <> current_schema()`, pgx.Identifier{table}.Sanitize()).Scan(&found)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("look for table %q in the search path: %w", table, err)
	}
	return fmt.Errorf("%w: table %q, schema %q", ErrElsewhere, table, found)
}

// RefuseForeign refuses a table that is there although its first migration is not noted as applied.
func RefuseForeign(ctx context.Context, db DB, layout, table string) error {
	exists, err := exists(ctx, db, table)
	if err != nil || !exists {
		return err
	}
	noted, err := applied(ctx, db, VersionTable(layout, table))
	if err == nil && !noted[1] {
		return fmt.Errorf("%w: %q", ErrTableExists, table)
	}
	return err
}

// exists looks for a table where the migrations would make it, and nowhere else on the search path.
func exists(ctx context.Context, db DB, table string) (exists bool, err error) {
	err = db.QueryRow(ctx,
		`SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = current_schema() AND tablename = $1)`, table).Scan(&exists)
	if err != nil {
		return false, fmt.Errorf("look for table %q: %w", table, err)
	}
	return exists, nil
}
