package demo

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/consume/inbox/pginbox"
	"github.com/packfinderz/outbox/ops/audit"
	"github.com/packfinderz/outbox/pgstream"
)

// makeTables makes the stream, the inbox, the audit log, and the tables of the shop and of billing.
func makeTables(ctx context.Context, pool *pgxpool.Pool) error {
	if err := pgstream.Migrate(ctx, pool); err != nil {
		return err
	}
	if err := pginbox.Migrate(ctx, pool, pginbox.Config{}); err != nil {
		return err
	}
	if err := audit.Migrate(ctx, pool, ""); err != nil {
		return err
	}
	for _, sql := range []string{ordersSQL, ledgerSQL} {
		if _, err := pool.Exec(ctx, sql); err != nil {
			return fmt.Errorf("make the shop's tables: %w", err)
		}
	}
	return nil
}
