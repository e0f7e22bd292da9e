package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/layouts/shipped"
)

const (
	history      = 2_000_000
	fullHistory  = 10_000_000 // with FULL=1 in the environment
	historyFloor = 0.9        // of the rate without delivered rows
	// historyEvents are drained in each round; more delivered rows come with every one.
	historyEvents = 100_000
)

// benchHistory holds the rate with many delivered rows in the table against that without.
// Every layout is measured with FULL=1; the one with the most indexes without.
func benchHistory(ctx context.Context, b *bench, outbox *program) error {
	full := os.Getenv("FULL") == "1"
	for _, shipped := range shipped.All() {
		if !full && shipped.Layout.Name != "modkit" {
			continue
		}
		rows := history
		if full {
			rows = fullHistory
		}
		if err := benchHistoryOf(ctx, b, outbox, shipped, rows); err != nil {
			return fmt.Errorf("%s, with delivered rows: %w", shipped.Layout.Name, err)
		}
	}
	return nil
}

func benchHistoryOf(ctx context.Context, b *bench, outbox *program, shipped shipped.Layout, rows int) error {
	layout := shipped.Layout.Name
	empty, err := newDrainTable(ctx, b, shipped)
	if err != nil {
		return err
	}
	defer empty.pool.Close()
	old, err := newDrainTable(ctx, b, shipped)
	if err != nil {
		return err
	}
	defer old.pool.Close()
	if err := load(ctx, old.pool, shipped, 1, rows, true); err != nil {
		return err
	}
	// What loading left to be written is written before the first round.
	if _, err := old.pool.Exec(ctx, "CHECKPOINT"); err != nil {
		return fmt.Errorf("write the delivered rows to disk: %w", err)
	}
	empty.next, old.next = rows+1, rows+1
	var without, with []time.Duration
	for round := range drainRounds {
		showRound(round)
		for i := range 2 {
			table, times := empty, &without
			if (round+i)%2 == 1 {
				table, times = old, &with
			}
			if table == empty {
				if _, err := empty.pool.Exec(ctx, "TRUNCATE "+shipped.Layout.Table); err != nil {
					return fmt.Errorf("empty the table: %w", err)
				}
			}
			took, err := table.drain(ctx, outbox)
			if err != nil {
				return err
			}
			*times = append(*times, took)
		}
	}
	r := quotient(without, with)
	b.promise(fmt.Sprintf("%s: with %d million delivered rows / none", layout, rows/1_000_000), r >= historyFloor,
		"%.2f (at least %.2f; %.0f and %.0f events/s)", r, historyFloor, rate(historyEvents, middle(with)), rate(historyEvents, middle(without)))
	for _, table := range []*drainTable{empty, old} {
		table.pool.Close()
		if err := b.drop(ctx, table.url); err != nil {
			return err
		}
	}
	return nil
}

// drainTable is a layout's table that is filled and drained again and again.
type drainTable struct {
	shipped shipped.Layout
	pool    *pgxpool.Pool
	url     string
	next    int // the number of the next event
}

func newDrainTable(ctx context.Context, b *bench, shipped shipped.Layout) (*drainTable, error) {
	pool, err := b.pool(ctx)
	if err != nil {
		return nil, err
	}
	if err := migrate(ctx, pool, shipped); err != nil {
		pool.Close()
		return nil, err
	}
	return &drainTable{shipped: shipped, pool: pool, url: pool.Config().ConnString()}, nil
}

func (t *drainTable) drain(ctx context.Context, outbox *program) (time.Duration, error) {
	last := t.next + historyEvents - 1
	if err := load(ctx, t.pool, t.shipped, t.next, last, false); err != nil {
		return 0, err
	}
	t.next = last + 1
	took, err := outbox.drain(ctx, t.shipped.Layout.Name, t.url)
	if err != nil {
		return 0, err
	}
	return took, drained(ctx, t.shipped.Layout.Name, t.url)
}
