package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/outboxpgx"
)

const (
	latencyRate      = 500 // events a second
	latencyProducers = 8   // enough that a slow commit does not hold up the next
)

// produce commits latencyRate events a second for a while, one in a transaction, on a fixed schedule:
// a slow commit does not put off those after it.
func produce(ctx context.Context, pool *pgxpool.Pool, emit emitFunc, length time.Duration) error {
	due := make(chan struct{}, latencyProducers)
	errs := make(chan error, latencyProducers)
	var producers sync.WaitGroup
	for range latencyProducers {
		producers.Go(func() {
			var failed error
			for range due {
				if failed == nil {
					failed = emit(ctx, pool)
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
	var id uuid.UUID
	return emitter.InTx(ctx, watchedPool{pool, func() { w.commit(id) }}, func(tx pgx.Tx) error {
		emitted, err := emitter.Emit(ctx, tx, event)
		id = emitted.ID
		return err
	})
}

// commit notes that a commit has just returned.
func (w *latencyWatch) commit(id uuid.UUID) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.committed[id] = now
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

// join returns the time of each event, sorted. One that came before its commit had returned to
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
