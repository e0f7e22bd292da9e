package pginbox

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/internal/migrations"
)

// Migrate makes the table of config, and its schema if that is missing, or brings it up to date. A table of that name
// that these migrations have not made is refused. It may run in several processes at once.
func Migrate(ctx context.Context, pool *pgxpool.Pool, config Config) error {
	files, err := Migrations(config)
	if err != nil {
		return err
	}
	set := migrations.Set{Schema: config.Schema, Layout: "inbox", Table: config.table(), Files: migrations.Static(files)}
	if err := set.Up(ctx, pool); err != nil {
		return fmt.Errorf("inbox: migrate: %w", err)
	}
	return nil
}
