package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	goredis "github.com/redis/go-redis/v9"

	"github.com/packfinderz/outbox/consume/inbox"
	"github.com/packfinderz/outbox/consume/inbox/pginbox"
	"github.com/packfinderz/outbox/consume/inbox/redisinbox"
	"github.com/packfinderz/outbox/destinations/redis"
	"github.com/packfinderz/outbox/destinations/redis/redistest"
	"github.com/packfinderz/outbox/outboxtest/testserver"
)

const (
	inboxEvents   = 300
	inboxConsumer = "bench"
)

// benchInbox measures what an inbox adds to a handler whose effect is a row in PostgreSQL, in
// a transaction of its own, one message after the other.
func benchInbox(ctx context.Context, b *bench) error {
	pool, err := b.pool(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	files, err := pginbox.Migrations(pginbox.Config{})
	if err != nil {
		return err
	}
	if err := migrateFiles(ctx, pool, files); err != nil {
		return err
	}
	if _, err := pool.Exec(ctx, "CREATE TABLE effects (event uuid PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())"); err != nil {
		return fmt.Errorf("make a table: %w", err)
	}
	bare := handling(func(event uuid.UUID) error { return pgx.BeginFunc(ctx, pool, effect(ctx, event)) })
	postgres, err := pginbox.New(pginbox.Config{})
	if err != nil {
		return err
	}
	inPostgres := handling(func(event uuid.UUID) error {
		return once(postgres.Handle(ctx, pool, inboxConsumer, event, func(_ context.Context, tx pgx.Tx) error { return effect(ctx, event)(tx) }))
	})
	if err := reportInbox("PostgreSQL", bare, inPostgres); err != nil {
		return err
	}
	return benchRedisInbox(ctx, pool, bare)
}

func benchRedisInbox(ctx context.Context, pool *pgxpool.Pool, bare func() (time.Duration, error)) error {
	server := &testserver.Example{}
	defer server.Done()
	config, err := redis.ParseURL(redistest.New(server).URL())
	if err != nil {
		return err
	}
	options, err := config.ClientOptions()
	if err != nil {
		return err
	}
	client := goredis.NewUniversalClient(options)
	defer func() { _ = client.Close() }() // it only measures
	in, err := redisinbox.New(redisinbox.Config{Client: client, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	inRedis := handling(func(event uuid.UUID) error {
		return once(inbox.Handle(ctx, in, inboxConsumer, event, func(ctx context.Context) error { return pgx.BeginFunc(ctx, pool, effect(ctx, event)) }))
	})
	return reportInbox("Redis (appendfsync always)", bare, inRedis)
}

// effect is what a handler does.
func effect(ctx context.Context, event uuid.UUID) func(tx pgx.Tx) error {
	return func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO effects (event) VALUES ($1)", event)
		return err
	}
}

// once is an error unless the handler ran.
func once(ran bool, err error) error {
	if err == nil && !ran {
		return errors.New("an event of this bench was handled before")
	}
	return err
}

// handling handles a round of new events.
func handling(handle func(event uuid.UUID) error) func() (time.Duration, error) {
	return timed(func() error {
		for range inboxEvents {
			if err := handle(uuid.Must(uuid.NewV7())); err != nil {
				return err
			}
		}
		return nil
	})
}

func reportInbox(name string, bare, guarded func() (time.Duration, error)) error {
	r, a, z, err := ratio(bare, guarded)
	if err != nil {
		return err
	}
	fmt.Printf("%-44s %.2f of the bare handler (%s and %s a message)\n", "inbox on "+name, r, z/inboxEvents, a/inboxEvents)
	return nil
}
