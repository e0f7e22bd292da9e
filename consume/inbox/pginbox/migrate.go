package pginbox

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/internal/migrations"
)

// Migrate creates the table of config, and its schema if necessary, or brings it up to date. It refuses a table of
// that name that these migrations did not create. It may run in several processes at once.
func Migrate(ctx context.Context, pool *pgxpool.Pool, config Config) error {
	files, err := Migrations(config)
	if err != nil {
		return err
	}
	set := migrations.Set{Schema: config.Schema, Layout: "inbox", Table: config.table(), Files: migrations.Static(files), Lost: true}
	if err := set.Up(ctx, pool); err != nil {
		return fmt.Errorf("inbox: migrate: %w", err)
	}
	return nil
}
