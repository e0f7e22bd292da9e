//go:build unix

package chaos

// The load of a queue table: transactions that commit or roll back events. A producer that does not learn what became
// of its commit does what a real one must: it emits the same events again.

import (
	"context"
	"errors"
	"math/rand/v2"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/outboxpgx"
)

const (
	tableProducers = 4
	// maxEvents is the size of the largest transaction.
	maxEvents = 20
	// rollbackEvery is how many transactions there are to one that rolls back.
	rollbackEvery = 10
)

// tableLoad emits to a queue table.
type tableLoad struct {
	*ledger
	layout  layouts.Layout
	pool    *pgxpool.Pool
	emitter *outboxpgx.Emitter
}

func (l *tableLoad) draw(choose *rand.Rand) (do job, commits int) {
	events, rollback := 1+choose.IntN(maxEvents), choose.IntN(rollbackEvery) == 0
	if !rollback {
		commits = events
	}
	return func(ctx context.Context) { l.do(ctx, events, rollback) }, commits
}

func (l *tableLoad) do(ctx context.Context, n int, rollback bool) {
	events, ids := make([]outbox.Event, n), make([]uuid.UUID, n)
	for i := range events {
		events[i] = newEvent(l.layout)
		ids[i] = events[i].ID
	}
	if rollback {
		l.rollBack(n)
	}
	for {
		emitted, err := l.try(ctx, events, rollback)
		switch {
		case errors.Is(err, errRollback):
			return
		case err == nil:
			l.commit(ids)
			if emitted[0].AlreadyEnqueued {
				l.repeat()
			}
			return
		case errors.Is(err, outbox.ErrInvalidEvent) || ctx.Err() != nil:
			l.fail(err)
			return
		case rollback:
			return // the database failed first: it is not committed in any case
		}
		pause(ctx, producerRetry)
	}
}

// try makes one transaction.
func (l *tableLoad) try(ctx context.Context, events []outbox.Event, rollback bool) (emitted []outbox.Emitted, err error) {
	err = l.emitter.InTx(ctx, l.pool, func(tx pgx.Tx) error {
		emitted, err = l.emitter.EmitMany(ctx, tx, events)
		if err == nil && rollback {
			return errRollback
		}
		return err
	})
	return emitted, err
}

// newEvent is a valid event for a layout, whatever columns it has.
func newEvent(layout layouts.Layout) outbox.Event {
	event := outbox.Event{ID: uuid.Must(uuid.NewV7()), Payload: []byte(`{"amount": 12}`)}
	for _, field := range []struct {
		column layouts.Column
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
