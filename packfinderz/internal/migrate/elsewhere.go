package migrate

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// ErrElsewhere means that the search path finds a table of the outbox in another schema than the first.
var ErrElsewhere = errors.New("the outbox's tables are in another schema")

// elsewhere refuses to create a second table in front of one that programs use: the events in that one would wait for
// ever.
func elsewhere(ctx context.Context, conn *pgx.Conn, table string) error {
	var schema, first string
	err := conn.QueryRow(ctx, `
		SELECT coalesce((SELECT relnamespace::regnamespace::text FROM pg_class WHERE oid = to_regclass($1)), ''), coalesce(current_schema(), '')`,
		table).Scan(&schema, &first)
	switch {
	case err != nil:
		return fmt.Errorf("look for %s: %w", table, err)
	case schema != "" && schema != first:
		return fmt.Errorf("%w: %s is in %s, and the search path begins with %s, where a second one would be made; "+
			"add search_path=%s to the address, or move the table", ErrElsewhere, table, schema, first, schema)
	}
	return nil
}
