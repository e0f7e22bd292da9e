package migrate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
)

// sampleNames are the names of tables, indexes and types that each migration of the sample makes.
func sampleNames() map[int64][]string {
	return map[int64][]string{
		1: {"stores", "licenses", "idx_licenses_store_id", "license_status_enum"},
		2: {
			"notifications", "notifications_once", "idx_notifications_license_id",
			"notification_type_enum", "notification_audience_enum",
		},
	}
}

// foreign are the names that migrations would take and others have taken, by version.
func foreign(ctx context.Context, db *sql.DB, versions string, names map[int64][]string) (map[int64][]string, error) {
	taken := make(map[int64][]string)
	for version, list := range names {
		for _, name := range list {
			exists, err := exists(ctx, db, name)
			if err != nil {
				return nil, err
			}
			if exists {
				taken[version] = append(taken[version], name)
			}
		}
	}
	// A migration is noted in the transaction that makes its tables. It is looked up after them, so that who runs beside us does not
	// look like a stranger.
	for version := range taken {
		ours, err := noted(ctx, db, versions, version)
		if err != nil {
			return nil, err
		}
		if ours {
			delete(taken, version)
		}
	}
	for _, list := range taken {
		slices.Sort(list)
	}
	return taken, nil
}

// ErrElsewhere means that the search path finds a table of the outbox in another schema than the one it would be made in.
var ErrElsewhere = errors.New("the outbox's tables are in another schema")

// elsewhere refuses to make a second table in front of one that programs have found so far: its events would wait for ever.
func elsewhere(ctx context.Context, db *sql.DB, table string) error {
	var schema, first string
	err := db.QueryRowContext(ctx, `
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

// exists looks for a table, an index or a type where a migration would make it, and nowhere else on the search path.
func exists(ctx context.Context, db *sql.DB, name string) (exists bool, err error) {
	err = db.QueryRowContext(ctx, `
		SELECT EXISTS (SELECT FROM pg_namespace n WHERE n.nspname = current_schema() AND (
			EXISTS (SELECT FROM pg_class WHERE relnamespace = n.oid AND relname = $1)
			OR EXISTS (SELECT FROM pg_type WHERE typnamespace = n.oid AND typname = $1)))`, name).Scan(&exists)
	if err != nil {
		return false, fmt.Errorf("look for %s: %w", name, err)
	}
	return exists, nil
}

// noted is whether goose has noted a version as applied.
func noted(ctx context.Context, db *sql.DB, versions string, version int64) (noted bool, err error) {
	if started, err := exists(ctx, db, versions); err != nil || !started {
		return false, err
	}
	err = db.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM `+versions+` WHERE version_id = $1 AND is_applied)`, version).Scan(&noted)
	if err != nil {
		return false, fmt.Errorf("read %s: %w", versions, err)
	}
	return noted, nil
}
