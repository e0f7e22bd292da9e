//go:build unix

package chaos

// The load: transactions that commit or roll back events, and the record of which did what. A producer that does not
// learn what became of its commit does what a real one must: it emits the same events again.

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/outboxpgx"
	"github.com/packfinderz/outbox/pgstore"
)

const (
	producerCount = 4
	// maxEvents is the size of the largest transaction.
	maxEvents = 20
	// rollbackEvery is how many transactions there are to one that rolls back.
	rollbackEvery = 10
	// producerRetry is the pause after a database that does not answer.
	producerRetry = 20 * time.Millisecond
)

// errRollback makes a transaction roll back on purpose.
var errRollback = errors.New("rolled back on purpose")

// job is one transaction to be made.
type job struct {
	events   int
	rollback bool
}

// producers emit what they are asked for.
type producers struct {
	layout  pgstore.Layout
	pool    *pgxpool.Pool
	emitter *outboxpgx.Emitter
	choose  *rand.Rand
	jobs    chan job
	open    atomic.Int64 // jobs that are asked for and not done
	wg      sync.WaitGroup

	mu         sync.Mutex
	committed  map[uuid.UUID]bool
	rolledBack map[uuid.UUID]bool
	repeated   int // transactions whose commit was answered by an error, and that had happened
	err        error
}

func startProducers(ctx context.Context, pool *pgxpool.Pool, layout pgstore.Layout, choose *rand.Rand) (*producers, error) {
	emitter, err := outboxpgx.New(layout, nil)
	if err != nil {
		return nil, err
	}
	p := &producers{
		layout: layout, pool: pool, emitter: emitter, choose: choose,
		// Room for every job of the largest run: asking never blocks.
		jobs:      make(chan job, 1<<17),
		committed: make(map[uuid.UUID]bool), rolledBack: make(map[uuid.UUID]bool),
	}
	for range producerCount {
		p.wg.Go(func() {
			for job := range p.jobs {
				p.do(ctx, job)
				p.open.Add(-1)
			}
		})
	}
	return p, nil
}

// ask asks for transactions that commit at least n events in all.
func (p *producers) ask(n int) {
	for n > 0 {
		next := job{events: 1 + p.choose.IntN(maxEvents), rollback: p.choose.IntN(rollbackEvery) == 0}
		if !next.rollback {
			n -= next.events
		}
		p.open.Add(1)
		p.jobs <- next
	}
}

// idle reports whether everything asked for is done.
func (p *producers) idle() bool { return p.open.Load() == 0 }

// finish waits for what was asked for and ends the producers.
func (p *producers) finish() error {
	close(p.jobs)
	p.wg.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

func (p *producers) do(ctx context.Context, j job) {
	events := make([]outbox.Event, j.events)
	for i := range events {
		events[i] = newEvent(p.layout)
	}
	if j.rollback {
		p.record(p.rolledBack, events) // before: it must not arrive while it is open, either
	}
	for {
		emitted, err := p.try(ctx, events, j.rollback)
		switch {
		case errors.Is(err, errRollback):
			return
		case err == nil:
			p.record(p.committed, events)
			if emitted[0].AlreadyEnqueued {
				p.mu.Lock()
				p.repeated++
				p.mu.Unlock()
			}
			return
		case errors.Is(err, outbox.ErrInvalidEvent) || ctx.Err() != nil:
			p.fail(err)
			return
		case j.rollback:
			return // the database failed first: it is not committed in any case
		}
		select {
		case <-time.After(producerRetry):
		case <-ctx.Done():
		}
	}
}

// try makes one transaction.
func (p *producers) try(ctx context.Context, events []outbox.Event, rollback bool) (emitted []outbox.Emitted, err error) {
	err = p.emitter.InTx(ctx, p.pool, func(tx pgx.Tx) error {
		emitted, err = p.emitter.EmitMany(ctx, tx, events)
		if err == nil && rollback {
			return errRollback
		}
		return err
	})
	return emitted, err
}

func (p *producers) record(set map[uuid.UUID]bool, events []outbox.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range events {
		set[events[i].ID] = true
	}
}

func (p *producers) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = errors.Join(p.err, err)
}

// newEvent is a valid event for a layout, whatever columns it has.
func newEvent(layout pgstore.Layout) outbox.Event {
	event := outbox.Event{ID: uuid.Must(uuid.NewV7()), Payload: []byte(`{"amount": 12}`)}
	for _, field := range []struct {
		column pgstore.Column
		into   *string
		value  string
	}{
		{layout.Columns.Namespace, &event.Namespace, "chaos"},
		{layout.Columns.Topic, &event.Topic, "orders"},
		{layout.Columns.Type, &event.Type, "order_created"},
		{layout.Columns.AggregateType, &event.AggregateType, "vendor_order"},
		{layout.Columns.AggregateID, &event.AggregateID, uuid.NewString()},
	} {
		if !field.column.IsZero() {
			*field.into = field.value
		}
	}
	return event
}
