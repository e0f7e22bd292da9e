package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/cmd/outbox/internal/migrate"
	"github.com/packfinderz/outbox/ops"
	"github.com/packfinderz/outbox/pgstream"
)

// stream is layout standard.
type stream struct{ pgstream.Stream }

func (s stream) target() outbox.Target { return s.Stream }

func (s stream) migration(ctx context.Context, conn *pgx.ConnConfig, options migrationOptions) (migrate.Config, error) {
	if options.adopt {
		return migrate.Config{}, usagef("--adopt keeps a table that you have; a stream is always made by its migrations")
	}
	if _, err := options.shape.WithDefaults(); err != nil {
		return migrate.Config{}, &usageError{err}
	}
	var err error
	if options.shape, err = s.keepShape(ctx, conn, options.shape); err != nil {
		return migrate.Config{}, err
	}
	files, err := s.files(options)
	return migrate.Config{
		Conn: conn, Layout: pgstream.LayoutName, Schema: s.Schema, Table: "outbox_stream", Beside: []string{"outbox_parked"},
		Files: files, Force: options.force,
	}, err
}

func (s stream) files(options migrationOptions) (fs.FS, error) {
	files, err := pgstream.Migrations(options.shape)
	return files, asUsage(err)
}

// keepShape returns the shape of the existing stream, or the wanted one if there is none. It refuses another shape:
// events are already spread over the shards.
func (s stream) keepShape(ctx context.Context, config *pgx.ConnConfig, wanted pgstream.Shape) (pgstream.Shape, error) {
	pool, err := connectPool(ctx, config, 1)
	if err != nil {
		return wanted, err
	}
	defer pool.Close()
	place := s.Stream
	if place.Schema == "" {
		// Migrations create their tables in the first schema of the search path; a stream further along it is
		// another one.
		if err := pool.QueryRow(ctx, `SELECT coalesce(current_schema(), '')`).Scan(&place.Schema); err != nil {
			return wanted, classify(fmt.Errorf("look for the schema: %w", err), s.ifMissing())
		}
	}
	is, err := place.Shape(ctx, pool)
	if errors.Is(err, pgstream.ErrNoStream) {
		return wanted, nil
	}
	if err != nil {
		return wanted, classify(err, s.ifMissing())
	}
	if !wanted.Allows(is) {
		return wanted, usagef("the stream has %s, and keeps them; for another shape make a stream in another --schema", is)
	}
	return is, nil
}

func (s stream) schema() string { return s.Schema }

func (s stream) ifMade() string {
	return "go on migrating it with what made it, or make a stream in another --schema"
}

func (s stream) ifMissing() string {
	return "make the stream with outbox migrate up, or check --schema"
}

func (s stream) open(ctx context.Context, conn *pgx.ConnConfig, options storeOptions) (*opened, error) {
	if f := options.filter; f.Namespace != "" || len(f.Topics) > 0 || f.TenantID != [16]byte{} {
		return nil, usagef("--namespace, --topic and --tenant: a stream is filtered by subscription; " +
			"make one with that filter: outbox subscriptions create")
	}
	config := pgstream.Config{
		Subscription: cmp.Or(options.subscription, pgstream.DefaultSubscription),
		Lease:        options.lease, MaxAttempts: options.attempts,
		Connections: max(options.concurrency, 1) + 2, Changed: options.changed, Logger: options.log,
	}
	// The store opens its own connections; these are for lookups and housekeeping.
	pool, err := connectPool(ctx, conn, 3)
	if err != nil {
		return nil, err
	}
	found, err := s.openStore(ctx, pool, config)
	if err != nil {
		pool.Close()
		// Whatever failed, nothing was tried yet.
		return nil, &usageError{classify(err, s.ifMissing())}
	}
	return found, nil
}

func (s stream) openStore(ctx context.Context, pool *pgxpool.Pool, config pgstream.Config) (*opened, error) {
	store, err := pgstream.Open(ctx, pool, s.Stream, config)
	if err != nil {
		return nil, err
	}
	subscription, err := s.FindSubscription(ctx, pool, config.Subscription)
	if err != nil {
		store.Close()
		return nil, err
	}
	return &opened{
		store: store, pool: pool, destination: subscription.Destination,
		parked: func(ctx context.Context) (map[string]int64, error) {
			lag, err := s.LagUpTo(ctx, pool, subscription.Name, 1)
			if err != nil {
				return nil, err
			}
			return lag.Parked, nil
		},
	}, nil
}

func (s stream) outbox(pool *pgxpool.Pool, subscription string) (*ops.Outbox, error) {
	return ops.Stream(pool, s.Stream, subscription)
}

func (s stream) subscriptions(ctx context.Context, pool *pgxpool.Pool) ([]string, error) {
	if err := s.CheckSchema(ctx, pool); err != nil {
		return nil, err
	}
	list, err := s.Subscriptions(ctx, pool)
	var names []string
	for i := range list {
		if !list[i].HalfMade {
			names = append(names, list[i].Name)
		}
	}
	return names, err
}

func (s stream) verify(ctx context.Context, conn *pgx.Conn, _ bool) error {
	return s.CheckSchema(ctx, conn)
}

func (s stream) wake(ctx context.Context, conn *pgx.Conn) error {
	return pgstream.Wake(ctx, conn, s.Stream)
}
