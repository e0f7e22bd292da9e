package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/bench/internal/peers"
	"github.com/packfinderz/outbox/pgstream"
)

const (
	// streamEvents are more than the peers get: at the stream's rate fewer would measure the
	// start of a process.
	streamEvents = 1_000_000
	// pairEvents are even more: two relays take some time to share the shards out.
	pairEvents = 3_000_000

	streamRiverFloor     = 15.0 // times as fast as river
	streamWatermillFloor = 1.5  // times as fast as watermill in its fastest mode
	streamBareFloor      = 0.7  // of the bare loop of the same SQL
	streamPairFloor      = 1.1  // two relays by one
)

// benchStream measures the stream: its rate beside others, with rows that are kept, with a
// transaction that stays open, its latency, and its memory while two million events wait. What
// it costs while it idles is measured beside the layouts.
func benchStream(ctx context.Context, b *bench) error {
	return b.withProgram(ctx, benchStreamRates, benchStreamPair, benchStreamKept, benchStreamLatency, benchStreamMemory)
}

// streamLog is a stream with events. Every drain is one of a new subscription, which finds
// all of them.
type streamLog struct {
	pool   *pgxpool.Pool
	url    string
	drains int
}

// stream makes a database with a stream.
func (b *bench) stream(ctx context.Context) (*streamLog, error) {
	pool, err := b.pool(ctx)
	if err != nil {
		return nil, err
	}
	files, err := pgstream.Migrations(pgstream.Shape{})
	if err == nil {
		err = migrateFiles(ctx, pool, files)
	}
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &streamLog{pool: pool, url: pool.Config().ConnString()}, nil
}

// load emits events in transactions of a thousand, of ten thousand keys.
func (s *streamLog) load(ctx context.Context, events int) error {
	const step = 100_000
	for first := 1; first <= events; first += step {
		_, err := s.pool.Exec(ctx, `
			INSERT INTO outbox_stream (shard, id, topic, type, key, content_type, payload)
			SELECT outbox_shard(key, id), id, 'orders', 'order_created', key, 'application/json', $3
			FROM (SELECT gen_random_uuid() AS id, 'order/' || g % 10000 AS key FROM generate_series($1::bigint, $2::bigint) AS g) AS new`,
			first, min(first+step-1, events), payload())
		if err != nil {
			return fmt.Errorf("load events: %w", err)
		}
	}
	if _, err := s.pool.Exec(ctx, "VACUUM ANALYZE outbox_stream"); err != nil {
		return fmt.Errorf("vacuum: %w", err)
	}
	return nil
}

// subscribe makes a subscription.
func (s *streamLog) subscribe(ctx context.Context, start pgstream.Start) (name string, err error) {
	s.drains++
	name = fmt.Sprintf("bench_%d", s.drains)
	return name, pgstream.Stream{}.CreateSubscription(ctx, s.pool, pgstream.Subscription{Name: name}, start)
}

// drained checks that a subscription has taken everything, and drops it.
func (s *streamLog) drained(ctx context.Context, name string) error {
	lag, err := pgstream.Stream{}.Lag(ctx, s.pool, name)
	if err != nil {
		return err
	}
	for _, shard := range lag.Shards {
		if shard.Events > 0 {
			return fmt.Errorf("%d events of shard %d are not delivered", shard.Events, shard.Shard)
		}
	}
	return pgstream.Stream{}.DropSubscription(ctx, s.pool, name)
}

// drain drains the whole log for a new subscription with some programs at once.
func (s *streamLog) drain(ctx context.Context, outbox *program, programs int) (time.Duration, error) {
	name, err := s.subscribe(ctx, pgstream.StartOldest)
	if err != nil {
		return 0, err
	}
	took, err := outbox.drainStream(ctx, s.url, name, programs)
	if err != nil {
		return 0, err
	}
	return took, s.drained(ctx, name)
}

// drainStream runs drains of one subscription, side by side, until all have ended.
func (p *program) drainStream(ctx context.Context, url, subscription string, programs int) (time.Duration, error) {
	failures := make(chan error, programs)
	start := time.Now()
	for range programs {
		go func() {
			_, err := p.drain(ctx, pgstream.LayoutName, url, "--subscription", subscription)
			failures <- err
		}()
	}
	for range programs {
		if err := <-failures; err != nil {
			return 0, err
		}
	}
	return time.Since(start), nil
}

// benchStreamRates drains a stream with the outbox program and with the bare loop of its SQL,
// and the peers' tables with the peers, in rounds.
func benchStreamRates(ctx context.Context, b *bench, outbox *program) error {
	log, err := b.stream(ctx)
	if err != nil {
		return err
	}
	defer log.pool.Close()
	if err := log.load(ctx, streamEvents); err != nil {
		return err
	}
	contenders := []*contender{
		{
			name: "stream", events: streamEvents, rounds: drainRounds,
			run: func(ctx context.Context) (time.Duration, error) { return log.drain(ctx, outbox, 1) },
		},
		{name: "stream, bare loop", events: streamEvents, rounds: drainRounds, run: log.drainBare},
	}
	for _, peer := range b.peers(peers.River, peers.WatermillQueue) {
		if peer.rounds > 1 {
			contenders = append(contenders, peer)
		}
	}
	times, err := compete(ctx, contenders)
	if err != nil {
		return err
	}
	for _, p := range []struct {
		name, than string
		floor      float64
	}{
		{"stream", peers.River, streamRiverFloor},
		{"stream", peers.WatermillQueue, streamWatermillFloor},
		{"stream", "stream, bare loop", streamBareFloor},
	} {
		n := min(len(times[p.name]), len(times[p.than]))
		r := quotient(times[p.than][:n], times[p.name][:n])
		b.promise(p.name+" / "+p.than, r >= p.floor, "%.2f (at least %.1f)", r, p.floor)
	}
	var changed int64
	err = log.pool.QueryRow(ctx, `SELECT coalesce(sum(n_tup_upd + n_tup_del), 0)::bigint FROM pg_stat_user_tables WHERE relname LIKE 'outbox\_stream%'`).Scan(&changed)
	if err != nil {
		return fmt.Errorf("read the statistics: %w", err)
	}
	b.promise("stream: rows of the log updated or deleted", changed == 0, "%d (0)", changed)
	return b.drop(ctx, log.url)
}

// benchStreamPair drains a stream with one relay and with two.
func benchStreamPair(ctx context.Context, b *bench, outbox *program) error {
	log, err := b.stream(ctx)
	if err != nil {
		return err
	}
	defer log.pool.Close()
	if err := log.load(ctx, pairEvents); err != nil {
		return err
	}
	times := make([][]time.Duration, 2)
	for round := range drainRounds {
		showRound(round)
		for i := range times {
			relays := (round + i) % len(times)
			took, err := log.drain(ctx, outbox, relays+1)
			if err != nil {
				return err
			}
			times[relays] = append(times[relays], took)
		}
	}
	r := quotient(times[0], times[1])
	b.promise("stream: two relays / one", r >= streamPairFloor, "%.2f (at least %.1f; %.0f and %.0f events/s)", r, streamPairFloor,
		rate(pairEvents, middle(slices.Clone(times[1]))), rate(pairEvents, middle(slices.Clone(times[0]))))
	log.pool.Close()
	return b.drop(ctx, log.url)
}
