package cli

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/cmd/outbox/internal/migrate"
	"github.com/packfinderz/outbox/internal/pgsession"
	"github.com/packfinderz/outbox/internal/sqlname"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/ops"
	"github.com/packfinderz/outbox/pgstore"
	"github.com/packfinderz/outbox/pgstream"
)

type queueTable struct {
	layouts.Layout
	// migrations is nil for a layout from a file.
	migrations func(layouts.Layout) (fs.FS, error)
}

func (q queueTable) target() outbox.Target { return q.Layout }

func (q queueTable) migration(_ context.Context, conn *pgx.ConnConfig, options migrationOptions) (migrate.Config, error) {
	files, err := q.files(options)
	return migrate.Config{
		Conn: conn, Layout: q.Name, Schema: q.Schema, Table: q.Table, Files: files,
		Adopt: options.adopt, Force: options.force, Queue: &q.Layout,
	}, err
}

func (q queueTable) files(options migrationOptions) (fs.FS, error) {
	if q.migrations == nil {
		return nil, usagef("layout %q comes from a file and has no migrations; its table is yours to make", q.Name)
	}
	if options.shape != (pgstream.Shape{}) {
		return nil, usagef("--slots, --slot-length and --shards are the shape of a stream; layout %s is a table", q.Name)
	}
	return q.migrations(q.Layout)
}

func (q queueTable) schema() string { return q.Schema }

func (q queueTable) ifMade() string { return "use --adopt to keep it and add only what it lacks" }

func (q queueTable) ifMissing() string {
	return fmt.Sprintf("is the table there, and is it a %s table? See outbox migrate, --schema and --table", q.Name)
}

func (q queueTable) open(ctx context.Context, conn *pgx.ConnConfig, options storeOptions) (*opened, error) {
	if options.subscription != "" {
		return nil, q.refuseSubscription()
	}
	if options.purgesDead && q.DeadLetter == nil {
		return nil, usagef("--dlq-retention: layout %s has no dead-letter table", q.Name)
	}
	// One for each batch, one to claim ahead, one for housekeeping.
	connections := max(options.concurrency, 1) + 2
	if q.Hold != layouts.HoldLease {
		connections++
	}
	pool, err := connectPool(ctx, conn, connections)
	if err != nil {
		return nil, err
	}
	store, err := q.store(ctx, pool, options)
	if err == nil && options.log != nil {
		err = pgsession.Notice(ctx, pool, options.log)
	}
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &opened{store: store, pool: pool}, nil
}

// store checks that the table exists and matches the layout. It stays in the schema where it finds the table.
func (q queueTable) store(ctx context.Context, pool *pgxpool.Pool, options storeOptions) (*pgstore.Store, error) {
	if q.Schema == "" {
		schema, err := sqlname.Place(ctx, pool, q.Table)
		if err != nil {
			return nil, classify(fmt.Errorf("look for the table's schema: %w", err), "")
		}
		q.Schema = schema
	}
	store, err := pgstore.New(pool, q.Layout, pgstore.Config{
		WorkerID: uuid.New(), Lease: options.lease, MaxAttempts: options.attempts, Filter: options.filter,
	})
	if err != nil {
		return nil, &usageError{err}
	}
	if err := store.Verify(ctx); err != nil {
		return nil, classify(err, q.ifMissing())
	}
	return store, nil
}

func (q queueTable) outbox(pool *pgxpool.Pool, subscription string) (*ops.Outbox, error) {
	if subscription != "" {
		return nil, q.refuseSubscription()
	}
	return ops.Table(pool, q.Layout)
}

func (q queueTable) refuseSubscription() error {
	return usagef("--subscription: layout %s is a table and has none; only a stream does", q.Name)
}

func (q queueTable) subscriptions(context.Context, *pgxpool.Pool) ([]string, error) {
	return []string{""}, nil
}

func (q queueTable) verify(ctx context.Context, conn *pgx.Conn, emits bool) error {
	if emits {
		return pgstore.VerifyEmit(ctx, conn, q.Layout)
	}
	return pgstore.Verify(ctx, conn, q.Layout)
}

func (q queueTable) wake(ctx context.Context, conn *pgx.Conn) error {
	return pgstore.Wake(ctx, conn, q.Layout)
}
