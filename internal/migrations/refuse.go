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

// ErrTableLost says that the table was made by these migrations and is gone.
var ErrTableLost = errors.New("the table is gone, though its migrations are recorded as applied")

// RefuseForeign refuses a table that is there although its first migration is not recorded as applied.
func RefuseForeign(ctx context.Context, db DB, layout, table string) error {
	exists, recorded, err := look(ctx, db, layout, table)
	if err == nil && exists && !recorded {
		return fmt.Errorf("%w: %q", ErrTableExists, table)
	}
	return err
}

// RefuseLost refuses a table that is gone although its first migration is recorded as applied.
func RefuseLost(ctx context.Context, db DB, layout, table string) error {
	exists, recorded, err := look(ctx, db, layout, table)
	if err == nil && !exists && recorded {
		return fmt.Errorf("%w: %q, in %[3]s; restore it from a backup, or drop what is left of it and run DROP TABLE %[3]s to make it again, empty",
			ErrTableLost, table, pgx.Identifier{VersionTable(layout, table)}.Sanitize())
	}
	return err
}

// look looks for a table, and for the record that its first migration was applied.
func look(ctx context.Context, db DB, layout, table string) (exists, recorded bool, err error) {
	exists, err = isThere(ctx, db, table)
	if err != nil {
		return false, false, err
	}
	noted, err := applied(ctx, db, VersionTable(layout, table))
	return exists, noted[1], err
}

// isThere looks for a table where the migrations would make it, and nowhere else on the search path.
func isThere(ctx context.Context, db DB, table string) (exists bool, err error) {
	err = db.QueryRow(ctx,
		`SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = current_schema() AND tablename = $1)`, table).Scan(&exists)
	if err != nil {
		return false, fmt.Errorf("look for table %q: %w", table, err)
	}
	return exists, nil
}
