package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/outboxpgx"
	"github.com/packfinderz/outbox/pgstore"
)

const (
	latencyRate      = 500 // events a second
	latencyFor       = 20 * time.Second
	latencyWarm      = 2 * time.Second // before it: connections and plans are made
	latencyProducers = 8               // enough that a slow commit does not hold up the next
	latencyPoll      = time.Second
	pingEvery        = 10 * time.Millisecond
	nudgedCeiling    = 10 * time.Millisecond
	polledCeiling    = latencyPoll + 20*time.Millisecond
)

// benchLatency measures the time from the return of a commit to the publisher's call,
// with the relay in the producer's process, woken by its commits and not.
func benchLatency(ctx context.Context, b *bench, _ *program) error {
	for _, shipped := range layouts.All() {
		for _, nudged := range []bool{true, false} {
			if !nudged && shipped.Layout.Name != "modkit" && os.Getenv("FULL") != "1" {
				continue // polling is the relay's, not the layout's
			}
			name, ceiling := shipped.Layout.Name+": commit to publish, woken", nudgedCeiling
			if !nudged {
				name, ceiling = shipped.Layout.Name+": commit to publish, polling", polledCeiling
			}
			took, pings, err := latencies(ctx, b, latencyLayout(shipped), nudged)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			p99 := percentile(took, 99)
			b.promise(name, p99 < ceiling, "p99 %s (under %s; p50 %s; meanwhile SELECT 1 has p99 %s)",
				p99, ceiling, percentile(took, 50), percentile(pings, 99))
		}
	}
	return nil
}

// latencyTarget is a place events are emitted to and relayed from.
type latencyTarget struct {
	name    string
	target  outboxpgx.Target
	migrate func(ctx context.Context, pool *pgxpool.Pool) error
	open    func(ctx context.Context, pool *pgxpool.Pool) (store outbox.Store, done func(), err error)
}

func latencyLayout(shipped layouts.Shipped) latencyTarget {
	return latencyTarget{
		name: shipped.Layout.Name, target: shipped.Layout,
		migrate: func(ctx context.Context, pool *pgxpool.Pool) error { return migrate(ctx, pool, shipped) },
		open: func(_ context.Context, pool *pgxpool.Pool) (outbox.Store, func(), error) {
			store, err := pgstore.New(pool, shipped.Layout, pgstore.Config{})
			return store, func() {}, err
		},
	}
}

// percentile is rounded to microseconds; took is sorted.
func percentile(took []time.Duration, p int) time.Duration {
	if len(took) == 0 {
		return 0
	}
	return took[(len(took)-1)*p/100].Round(time.Microsecond)
}

// latencies emits for latencyFor, after a while to warm up, and returns the time each event took, sorted, and beside
// it what the machine and the server did to a round trip in that time.
func latencies(ctx context.Context, b *bench, target latencyTarget, nudged bool) (took, pings []time.Duration, err error) {
	url, err := b.database(ctx)
	if err != nil {
		return nil, nil, err
	}
	room, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, nil, fmt.Errorf("read a database's URL: %w", err)
	}
	room.MaxConns = latencyProducers + 1
	pool, err := pgxpool.NewWithConfig(ctx, room)
	if err != nil {
		return nil, nil, fmt.Errorf("connect: %w", err)
	}
	defer pool.Close()
	if err := target.migrate(ctx, pool); err != nil {
		return nil, nil, err
	}
	// A pool of its own, as a relay in a program of its own has.
	relayPool, err := pgxpool.New(ctx, url)
	if err != nil {
		return nil, nil, fmt.Errorf("connect: %w", err)
	}
	defer relayPool.Close()
	store, done, err := target.open(ctx, relayPool)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	watch := &latencyWatch{committed: make(map[uuid.UUID]time.Time), published: make(map[uuid.UUID]time.Time)}
	relay, err := outbox.NewRelay(outbox.Config{
		Store: store, Publisher: watch, Poll: latencyPoll, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, nil, err
	}
	config := &outbox.EmitConfig{}
	if nudged {
		config.Nudge = relay.Nudge
	}
	emitter, err := outboxpgx.New(target.target, config)
	if err != nil {
		return nil, nil, err
	}
	if err := relay.Start(ctx); err != nil {
		return nil, nil, err
	}
	pinging, stopPinging := context.WithCancel(ctx)
	var pinger sync.WaitGroup
	pinger.Go(func() { pings = pingTimes(pinging, pool) })
	if err = produce(ctx, pool, emitter, event(target.name), watch, latencyWarm); err == nil {
		watch.forget()
		err = produce(ctx, pool, emitter, event(target.name), watch, latencyFor)
	}
	stopPinging()
	pinger.Wait()
	time.Sleep(2 * latencyPoll) // the last events are published
	relay.Stop()
	if err != nil {
		return nil, nil, err
	}
	took, err = watch.join()
	return took, pings, err
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

// produce commits latencyRate events a second for a while, one in a transaction, on a fixed schedule:
// a slow commit does not put off those after it.
func produce(ctx context.Context, pool *pgxpool.Pool, emitter *outboxpgx.Emitter, event outbox.Event, watch *latencyWatch, length time.Duration) error {
	due := make(chan struct{}, latencyProducers)
	errs := make(chan error, latencyProducers)
	var producers sync.WaitGroup
	for range latencyProducers {
		producers.Go(func() {
			var failed error
			for range due {
				if failed == nil {
					failed = watch.emit(ctx, pool, emitter, event)
				}
			}
			errs <- failed
		})
	}
	start := time.Now()
	for i := range int(length.Seconds()) * latencyRate {
		time.Sleep(time.Until(start.Add(time.Duration(i) * time.Second / latencyRate)))
		due <- struct{}{}
	}
	close(due)
	producers.Wait()
	close(errs)
	var all error
	for err := range errs {
		all = errors.Join(all, err)
	}
	return all
}

// latencyWatch notes when events were committed, and, as the publisher, when they came.
type latencyWatch struct {
	mu                   sync.Mutex
	committed, published map[uuid.UUID]time.Time
}

func (w *latencyWatch) emit(ctx context.Context, pool *pgxpool.Pool, emitter *outboxpgx.Emitter, event outbox.Event) error {
	event.ID = uuid.Must(uuid.NewV7())
	return emitter.InTx(ctx, watchedPool{pool, func() { w.note(w.committed, event.ID) }}, func(tx pgx.Tx) error {
		_, err := emitter.Emit(ctx, tx, event)
		return err
	})
}

func (w *latencyWatch) note(in map[uuid.UUID]time.Time, id uuid.UUID) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	in[id] = now
}

func (w *latencyWatch) Publish(_ context.Context, messages []outbox.Message) []error {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range messages {
		w.published[messages[i].ID] = now
	}
	return make([]error, len(messages))
}

// KeepsOrder makes it a publisher that takes whole batches: nothing fails here.
func (w *latencyWatch) KeepsOrder() bool { return true }

// forget begins anew; what comes late of what was before is not counted.
func (w *latencyWatch) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.committed)
}

// join returns the time of each event. One that came before its commit had returned to
// the producer took none.
func (w *latencyWatch) join() ([]time.Duration, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	took := make([]time.Duration, 0, len(w.committed))
	for id, committed := range w.committed {
		published, ok := w.published[id]
		if !ok {
			return nil, fmt.Errorf("event %s was committed and not published", id)
		}
		took = append(took, max(published.Sub(committed), 0))
	}
	if len(took) == 0 {
		return nil, errors.New("no event was committed")
	}
	slices.Sort(took)
	return took, nil
}

// watchedPool tells of a commit the moment it returns, before the emitter wakes the relay.
type watchedPool struct {
	*pgxpool.Pool
	committed func()
}

func (p watchedPool) BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error) {
	tx, err := p.Pool.BeginTx(ctx, options)
	return watchedTx{tx, p.committed}, err
}

type watchedTx struct {
	pgx.Tx
	committed func()
}

func (t watchedTx) Commit(ctx context.Context) error {
	err := t.Tx.Commit(ctx)
	t.committed()
	return err
}
