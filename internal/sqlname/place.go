package sqlname

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// placeSQL is the schema in which the search path finds a table $1. Temporary tables, which every search path finds first, are
// not looked at: they are somebody's own.
const placeSQL = `
SELECT n.nspname::text FROM unnest(current_schemas(false)) WITH ORDINALITY AS p(schema, place)
JOIN pg_namespace AS n ON n.nspname = p.schema JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = $1
ORDER BY p.place LIMIT 1`

// Place is the schema in which the search path finds a table now; empty if it finds none. A program that runs for long keeps to
// it: the search path of a session can change, by the database's settings, or by another client of a pooler.
func Place(ctx context.Context, db interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, table string) (schema string, err error) {
	err = db.QueryRow(ctx, `SELECT coalesce((`+placeSQL+`), '')`, table).Scan(&schema)
	return schema, err
}
