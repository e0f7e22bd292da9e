package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/layouts/shipped"
	"github.com/packfinderz/outbox/outboxpgx"
	"github.com/packfinderz/outbox/pgstore"
)

const (
	latencyRounds = 5               // the median of their percentiles counts
	latencyFor    = 8 * time.Second // each
	latencyWarm   = time.Second     // before it: connections and plans are made
	latencyPoll   = time.Second
	pingEvery     = 50 * time.Millisecond
	nudgedCeiling = 10 * time.Millisecond
	polledCeiling = latencyPoll + 20*time.Millisecond
)

// subject is a way to get events from a commit to a publisher.
type subject struct {
	name    string
	ceiling time.Duration // what its p99 stays under
	migrate func(ctx context.Context, pool *pgxpool.Pool) error
	// start begins to publish to watch. emit commits an event and tells watch.
	start func(ctx context.Context, pool *pgxpool.Pool, watch *latencyWatch) (emit emitFunc, stop func(), err error)

	rounds []latencyRound
}

type emitFunc func(ctx context.Context, pool *pgxpool.Pool) error

// latencyRound is what a round measured: the events, and what the machine and the server did to
// a round trip in that time.
type latencyRound struct{ p50, p99, ping99 time.Duration }

// benchLatency measures the time from the return of a commit to the publisher's call,
// with the relay in the producer's process, woken by its commits and not.
func benchLatency(ctx context.Context, b *bench, _ *program) error {
	var subjects []*subject
	for _, shipped := range shipped.All() {
		open := func(_ context.Context, pool *pgxpool.Pool) (outbox.Store, func(), error) {
			store, err := pgstore.New(pool, shipped.Layout, pgstore.Config{})
			return store, func() {}, err
		}
		name := shipped.Layout.Name
		add := func(suffix string, ceiling time.Duration, nudged bool) {
			subjects = append(subjects, &subject{
				name: name + suffix, ceiling: ceiling,
				migrate: func(ctx context.Context, pool *pgxpool.Pool) error { return migrate(ctx, pool, shipped) },
				start:   relayed(name, shipped.Layout, open, nudged),
			})
		}
		add(": commit to publish, woken", nudgedCeiling, true)
		if name == "modkit" || os.Getenv("FULL") == "1" { // polling is the relay's, not the layout's
			add(": commit to publish, polling", polledCeiling, false)
		}
	}
	return b.latencies(ctx, subjects...)
}

// latencies measures subjects in turn, with the same done by hand among them, and prints
// whether they keep their promise. What is slow by hand, too, is the machine's doing.
func (b *bench) latencies(ctx context.Context, subjects ...*subject) error {
	hand := handMade()
	subjects = append(subjects, hand)
	for round := range latencyRounds {
		for _, s := range subjects {
			measured, err := b.latencyRound(ctx, s)
			if err != nil {
				return fmt.Errorf("%s, round %d: %w", s.name, round+1, err)
			}
			s.rounds = append(s.rounds, measured)
		}
	}
	floor := hand.median(func(r latencyRound) time.Duration { return r.p99 })
	for _, s := range subjects[:len(subjects)-1] {
		p99 := s.median(func(r latencyRound) time.Duration { return r.p99 })
		p50 := s.median(func(r latencyRound) time.Duration { return r.p50 })
		ping := s.median(func(r latencyRound) time.Duration { return r.ping99 })
		b.promise(s.name, p99 < s.ceiling, "p99 %s (under %s; p50 %s; by hand p99 %s; SELECT 1 meanwhile %s)",
			p99, s.ceiling, p50, floor, ping)
	}
	return nil
}

func (s *subject) median(of func(latencyRound) time.Duration) time.Duration {
	var list []time.Duration
	for _, r := range s.rounds {
		list = append(list, of(r))
	}
	return middle(list)
}

// relayed is a relay in the producers' process, on a pool of its own, as one in a program of
// its own has.
func relayed(
	name string, target outbox.Target, open func(context.Context, *pgxpool.Pool) (outbox.Store, func(), error), nudged bool,
) func(context.Context, *pgxpool.Pool, *latencyWatch) (emitFunc, func(), error) {
	return func(ctx context.Context, pool *pgxpool.Pool, watch *latencyWatch) (emitFunc, func(), error) {
		store, done, err := open(ctx, pool)
		if err != nil {
			return nil, nil, err
		}
		relay, err := outbox.NewRelay(outbox.RelayConfig{
			Store: store, Publisher: watch, Poll: latencyPoll, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			return nil, nil, err
		}
		config := outbox.EmitConfig{}
		if nudged {
			config.Nudge = relay.Nudge
		}
		emitter, err := outboxpgx.New(target, config)
		if err != nil {
			return nil, nil, err
		}
		if err := relay.Start(ctx); err != nil {
			return nil, nil, err
		}
		emit := func(ctx context.Context, pool *pgxpool.Pool) error {
			e := event(name)
			if e.AggregateType != "" {
				e.AggregateID = uuid.NewString() // many aggregates, each with its own key
			}
			return watch.emit(ctx, pool, emitter, e)
		}
		stop := func() {
			_ = relay.Stop(context.WithoutCancel(ctx)) // the measurement is over
			done()
		}
		return emit, stop, nil
	}
}

// latencyRound emits for latencyFor, after a while to warm up.
func (b *bench) latencyRound(ctx context.Context, s *subject) (round latencyRound, err error) {
	url, err := b.database(ctx)
	if err != nil {
		return round, err
	}
	room, err := pgxpool.ParseConfig(url)
	if err != nil {
		return round, fmt.Errorf("read a database's URL: %w", err)
	}
	room.MaxConns = latencyProducers + 1
	pool, err := pgxpool.NewWithConfig(ctx, room)
	if err != nil {
		return round, fmt.Errorf("connect: %w", err)
	}
	defer pool.Close()
	if err := s.migrate(ctx, pool); err != nil {
		return round, err
	}
	own, err := pgxpool.New(ctx, url)
	if err != nil {
		return round, fmt.Errorf("connect: %w", err)
	}
	defer own.Close()
	watch := &latencyWatch{committed: make(map[uuid.UUID]time.Time), published: make(map[uuid.UUID]time.Time)}
	emit, stop, err := s.start(ctx, own, watch)
	if err != nil {
		return round, err
	}
	pinging, stopPinging := context.WithCancel(ctx)
	var pinger sync.WaitGroup
	var pings []time.Duration
	pinger.Go(func() { pings = pingTimes(pinging, pool) })
	if err = produce(ctx, pool, emit, latencyWarm); err == nil {
		watch.forget()
		err = produce(ctx, pool, emit, latencyFor)
	}
	stopPinging()
	pinger.Wait()
	time.Sleep(2 * latencyPoll) // the last events are published
	stop()
	if err != nil {
		return round, err
	}
	took, err := watch.join()
	return latencyRound{p50: percentile(took, 50), p99: percentile(took, 99), ping99: percentile(pings, 99)}, err
}

// percentile is rounded to microseconds; took is sorted.
func percentile(took []time.Duration, p int) time.Duration {
	if len(took) == 0 {
		return 0
	}
	return took[(len(took)-1)*p/100].Round(time.Microsecond)
}

// pingTimes are the times of SELECT 1, sorted, until ctx ends.
func pingTimes(ctx context.Context, pool *pgxpool.Pool) (times []time.Duration) {
	for ; ctx.Err() == nil; time.Sleep(pingEvery) {
		start := time.Now()
		if _, err := pool.Exec(ctx, "SELECT 1"); err == nil {
			times = append(times, time.Since(start))
		}
	}
	slices.Sort(times)
	return times
}
