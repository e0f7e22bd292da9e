package audit

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/internal/migrations"
)

// Migrate creates the tables of the audit log in a schema, or brings them up to date; empty for the first schema of
// the search path. It does the same as outbox migrate up --audit, and either can continue where the other ended.
func Migrate(ctx context.Context, pool *pgxpool.Pool, schema string) error {
	files, err := Migrations()
	if err != nil {
		return err
	}
	set := migrations.Set{Schema: schema, Layout: "log", Table: Table, Files: migrations.Static(files), Lost: true}
	if err := set.Up(ctx, pool); err != nil {
		return fmt.Errorf("outbox: migrate the audit log: %w", err)
	}
	return nil
}
