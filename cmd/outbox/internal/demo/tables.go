package demo

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/cmd/outbox/internal/migrate"
	"github.com/packfinderz/outbox/inbox/pginbox"
	"github.com/packfinderz/outbox/ops"
	"github.com/packfinderz/outbox/pgstream"
)

// makeTables makes the stream, the inbox, the audit log, and the tables of the shop and of billing.
func makeTables(ctx context.Context, pool *pgxpool.Pool, url string) error {
	conn, err := pgx.ParseConfig(url)
	if err != nil {
		return fmt.Errorf("read the private PostgreSQL's address: %w", err)
	}
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
		if err := migrateUp(ctx, migrate.Config{Conn: conn, Layout: pgstream.LayoutName, Table: table, Files: files}); err != nil {
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

func migrateUp(ctx context.Context, config migrate.Config) error {
	m, err := migrate.New(ctx, config)
	if err != nil {
		return err
	}
	defer func() { _ = m.Close() }() // the work is committed by then
	_, err = m.Up(ctx)
	return err
}
