package demo

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/consume/inbox/pginbox"
	"github.com/packfinderz/outbox/examples/internal/database"
	"github.com/packfinderz/outbox/ops"
	"github.com/packfinderz/outbox/pgstream"
)

// makeTables makes the stream, the inbox, the audit log, and the tables of the shop and of billing.
func makeTables(ctx context.Context, pool *pgxpool.Pool, url string) error {
	stream, err := pgstream.Migrations(pgstream.Shape{})
	if err != nil {
		return err
	}
	inbox, err := pginbox.Migrations(pginbox.Config{})
	if err != nil {
		return err
	}
	audit, err := ops.Migrations()
	if err != nil {
		return err
	}
	for table, files := range map[string]fs.FS{"outbox_stream": stream, pginbox.DefaultTable: inbox, ops.AuditTable: audit} {
		if err := database.Migrate(ctx, url, table+"_goose", files); err != nil {
			return err
		}
	}
	for _, sql := range []string{ordersSQL, ledgerSQL} {
		if _, err := pool.Exec(ctx, sql); err != nil {
			return fmt.Errorf("make the shop's tables: %w", err)
		}
	}
	return nil
}
