package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/pgstream"
)

const (
	streamKept       = 2_000_000
	streamKeptFull   = 20_000_000 // with FULL=1 in the environment
	streamKeptEvents = 500_000    // drained in each round
	streamKeptFloor  = 0.9        // of the rate with no rows kept
	streamOpenFloor  = 0.9        // of the rate without an open transaction
	shardsCeiling    = 1 << 20    // bytes of outbox_shards, with a transaction held open
)

// benchStreamKept holds the rate with many delivered rows in the log against that with none,
// and the rate while a transaction stays open against that without.
func benchStreamKept(ctx context.Context, b *bench, outbox *program) error {
	kept := streamKept
	if os.Getenv("FULL") == "1" {
		kept = streamKeptFull
	}
	empty, err := b.streamWith(ctx, 0)
	if err != nil {
		return err
	}
	defer empty.pool.Close()
	full, err := b.streamWith(ctx, kept)
	if err != nil {
		return err
	}
	defer full.pool.Close()
	// What loading left to be written is written before the first round.
	if _, err := full.pool.Exec(ctx, "CHECKPOINT"); err != nil {
		return fmt.Errorf("write the rows to disk: %w", err)
	}
	logs := []*keptLog{empty, full}
	times := make([][]time.Duration, len(logs))
	for round := range drainRounds {
		showRound(round)
		for i := range logs {
			which := (round + i) % len(logs)
			took, err := logs[which].drainOf(ctx, outbox, round)
			if err != nil {
				return err
			}
			times[which] = append(times[which], took)
		}
	}
	without, with := times[0], times[1]
	r := quotient(without, with)
	b.promise(fmt.Sprintf("stream: with %d million rows kept / none", kept/1_000_000), r >= streamKeptFloor,
		"%.2f (at least %.2f; %.0f and %.0f events/s)", r, streamKeptFloor, rate(streamKeptEvents, middle(with)), rate(streamKeptEvents, middle(without)))
	full.pool.Close()
	if err := b.drop(ctx, full.url); err != nil {
		return err
	}
	if err := benchStreamOpen(ctx, b, outbox, empty.streamLog); err != nil {
		return err
	}
	empty.pool.Close()
	return b.drop(ctx, empty.url)
}

// keptLog is a stream with events to drain, once for each round, and others before them that
// none of its subscriptions has to read.
type keptLog struct {
	*streamLog
	subscriptions []string
}

func (b *bench) streamWith(ctx context.Context, kept int) (*keptLog, error) {
	log, err := b.stream(ctx)
	if err != nil {
		return nil, err
	}
	l := &keptLog{streamLog: log}
	if err := l.fill(ctx, kept); err != nil {
		log.pool.Close()
		return nil, err
	}
	return l, nil
}

func (l *keptLog) fill(ctx context.Context, kept int) error {
	if err := l.load(ctx, kept); err != nil {
		return err
	}
	for range drainRounds {
		name, err := l.subscribe(ctx, pgstream.StartNow)
		if err != nil {
			return err
		}
		l.subscriptions = append(l.subscriptions, name)
	}
	return l.load(ctx, streamKeptEvents)
}

// drainOf drains the log for the subscription of a round.
func (l *keptLog) drainOf(ctx context.Context, outbox *program, round int) (time.Duration, error) {
	name := l.subscriptions[round]
	took, err := outbox.drainStream(ctx, l.url, name, 1)
	if err != nil {
		return 0, err
	}
	return took, l.drained(ctx, name)
}

// benchStreamOpen drains a stream with and without a transaction that stays open, with an
// event of its own in it.
func benchStreamOpen(ctx context.Context, b *bench, outbox *program, log *streamLog) error {
	var without, with []time.Duration
	var largest int64
	for round := range drainRounds {
		showRound(round)
		// Subscriptions that are gone leave rows behind, which in real life vacuum removes in time.
		if _, err := log.pool.Exec(ctx, "VACUUM outbox_shards"); err != nil {
			return fmt.Errorf("vacuum: %w", err)
		}
		for i := range 2 {
			if (round+i)%2 == 0 {
				took, err := log.drain(ctx, outbox, 1)
				if err != nil {
					return err
				}
				without = append(without, took)
				continue
			}
			err := pgx.BeginFunc(ctx, log.pool, func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, `INSERT INTO outbox_stream (shard, id, topic, type, payload) VALUES (0, gen_random_uuid(), 'orders', 'open', '{}')`)
				if err != nil {
					return err
				}
				took, err := log.drain(ctx, outbox, 1)
				if err != nil {
					return err
				}
				with = append(with, took)
				var size int64
				err = log.pool.QueryRow(ctx, `SELECT pg_relation_size('outbox_shards')`).Scan(&size)
				largest = max(largest, size)
				return err
			})
			if err != nil {
				return fmt.Errorf("with a transaction open: %w", err)
			}
		}
	}
	r := quotient(without, with)
	b.promise("stream: with a transaction open / without", r >= streamOpenFloor,
		"%.2f (at least %.2f; %.0f and %.0f events/s)", r, streamOpenFloor, rate(streamKeptEvents, middle(with)), rate(streamKeptEvents, middle(without)))
	b.promise("stream: size of outbox_shards meanwhile", largest < shardsCeiling, "%d KiB (under %d)", largest>>10, shardsCeiling>>10)
	return nil
}
