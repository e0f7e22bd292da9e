package migrate

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/packfinderz/outbox/layouts"
)

// DB is a connection or a pool.
type DB interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// AddValues adds the backend's own event types and aggregate types to the enum types of a layout. It returns the added
// values.
func AddValues(ctx context.Context, db DB, layout layouts.Layout) (added []string, err error) {
	for _, column := range []layouts.Column{layout.Columns.Type, layout.Columns.AggregateType} {
		name := pgx.Identifier{column.Enum}.Sanitize()
		rows, _ := db.Query(ctx, `SELECT value FROM unnest($2::text[]) WITH ORDINALITY AS own (value, place)
			WHERE NOT EXISTS (SELECT FROM pg_enum WHERE enumtypid = to_regtype($1) AND enumlabel = value) ORDER BY place`, name, column.Values) // the rows say what failed
		missing, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return added, fmt.Errorf("look for the values of %s: %w", column.Enum, err)
		}
		for _, value := range missing {
			// A statement that changes a type takes no parameters. Another process may add the value just now.
			sql := fmt.Sprintf("ALTER TYPE %s ADD VALUE IF NOT EXISTS '%s'", name, strings.ReplaceAll(value, "'", "''"))
			if _, err := db.Exec(ctx, sql); err != nil {
				return added, fmt.Errorf("add the value %s to %s: %w", value, column.Enum, err)
			}
			added = append(added, value)
		}
	}
	return added, nil
}
