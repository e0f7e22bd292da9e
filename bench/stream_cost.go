package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/pgstream"
)

const (
	streamLatencyCeiling = 5 * time.Millisecond
	streamMemoryEvents   = 2_000_000
	streamMemoryFull     = 10_000_000 // with FULL=1 in the environment
)

// benchStreamLatency measures the time from commit to publish, with the relay woken.
func benchStreamLatency(ctx context.Context, b *bench, _ *program) error {
	open := func(ctx context.Context, pool *pgxpool.Pool) (outbox.Store, func(), error) {
		store, err := pgstream.Open(ctx, pool, pgstream.Stream{}, pgstream.Config{})
		if err != nil {
			return nil, nil, err
		}
		return store, store.Close, nil
	}
	return b.latencies(ctx, &subject{
		name: "stream: commit to publish, woken", ceiling: streamLatencyCeiling,
		migrate: func(ctx context.Context, pool *pgxpool.Pool) error {
			files, err := pgstream.Migrations(pgstream.Shape{})
			if err != nil {
				return err
			}
			return migrateFiles(ctx, pool, files)
		},
		start: relayed(pgstream.LayoutName, pgstream.Stream{}, open, true),
	})
}

// benchStreamMemory reads the largest resident size of a relay that drains millions.
func benchStreamMemory(ctx context.Context, b *bench, outbox *program) error {
	events := streamMemoryEvents
	if os.Getenv("FULL") == "1" {
		events = streamMemoryFull
	}
	log, err := b.stream(ctx)
	if err != nil {
		return err
	}
	defer log.pool.Close()
	if err := log.load(ctx, events); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, log.url)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }() // it only reads
	command, err := runningRelay(ctx, outbox, pgstream.LayoutName, log.url)
	if err != nil {
		return err
	}
	// A window is closed when all of it is settled; before the first there is none.
	peak, err := peakWhileDraining(ctx, conn, command.Process.Pid, `
		SELECT EXISTS (SELECT FROM outbox_shards WHERE s2 IS NOT NULL OR q1 = 0)`)
	// It is stopped in any case; how it ends is not measured.
	_ = command.Process.Signal(os.Interrupt)
	_ = command.Wait()
	if err != nil {
		return err
	}
	b.promise(fmt.Sprintf("stream: resident memory, %d million waiting", events/1_000_000), peak < memoryCeiling, "%.1f MB (under %d)",
		float64(peak)/1024, memoryCeiling/1024)
	log.pool.Close()
	return b.drop(ctx, log.url)
}
