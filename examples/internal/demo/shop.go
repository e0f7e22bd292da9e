package demo

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/outboxpgx"
)

// keyFormat makes the key of an order's events.
const keyFormat = "order/%d"

// An order goes through these steps, one transaction and one event each.
var steps = []string{"order_placed", "order_paid", "order_shipped"}

const (
	ordersSQL = `CREATE TABLE orders (id bigserial PRIMARY KEY, total int NOT NULL, step int NOT NULL DEFAULT 1)`
	placeSQL  = `INSERT INTO orders (total) VALUES ($1) RETURNING id`
	// advanceSQL locks the order it works on: so the events of an order are committed, and
	// delivered, in the order of its steps. The newest orders rest, for a livelier screen.
	advanceSQL = `
UPDATE orders SET step = step + 1
WHERE id = (SELECT id FROM orders WHERE step < $1 AND id < (SELECT max(id) - 5 FROM orders) ORDER BY random() LIMIT 1 FOR UPDATE SKIP LOCKED)
RETURNING id, total, step`
	countSQL = `SELECT count(*), coalesce(sum(step), 0), (SELECT count(*) FROM outbox_stream),
  (SELECT count(*) FROM outbox_parked WHERE state = 'dead') FROM orders`
)

// shop is the business.
type shop struct {
	pool    *pgxpool.Pool
	emitter *outboxpgx.Emitter
	// placed counts orders, changed the customers that changed their minds.
	placed, changed atomic.Int64
}

// String is how business goes.
func (s *shop) String() string {
	return fmt.Sprintf("%d orders committed and %d rolled back", s.placed.Load(), s.changed.Load())
}

// serve serves a customer and works on older orders.
func (s *shop) serve(ctx context.Context) error {
	err := s.place(ctx)
	for range len(steps) - 1 {
		if err == nil {
			err = s.advance(ctx)
		}
	}
	return err
}

// errChangedMind is a customer's.
var errChangedMind = errors.New("the customer changed their mind")

// place writes an order and its event in one transaction. Every tenth is rolled back, and
// leaves neither.
func (s *shop) place(ctx context.Context) error {
	err := s.emitter.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		var id int64
		total := 500 + int(s.placed.Load()*37%9500)
		if err := tx.QueryRow(ctx, placeSQL, total).Scan(&id); err != nil {
			return fmt.Errorf("insert an order: %w", err)
		}
		if err := s.emit(ctx, tx, id, total, 1); err != nil {
			return err
		}
		if id%10 == 0 {
			return errChangedMind
		}
		return nil
	})
	switch {
	case errors.Is(err, errChangedMind):
		s.changed.Add(1)
		return nil
	case err != nil:
		return err
	}
	s.placed.Add(1)
	return nil
}

// advance takes any order that is not finished one step further, with an event.
func (s *shop) advance(ctx context.Context) error {
	return s.emitter.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		var id int64
		var total, step int
		err := tx.QueryRow(ctx, advanceSQL, len(steps)).Scan(&id, &total, &step)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil // there is nothing to do
		}
		if err != nil {
			return fmt.Errorf("work on an order: %w", err)
		}
		return s.emit(ctx, tx, id, total, step)
	})
}

func (s *shop) emit(ctx context.Context, tx pgx.Tx, id int64, total, step int) error {
	_, err := s.emitter.Emit(ctx, tx, outbox.Event{
		Type: steps[step-1], AggregateType: "order", AggregateID: strconv.FormatInt(id, 10), Key: fmt.Sprintf(keyFormat, id),
		DedupeKey: fmt.Sprintf("order/%d/%d", id, step),
		Payload:   fmt.Appendf(nil, `{"order": %d, "total": %d}`, id, total),
	})
	return err
}

// books are what the tables say in the end.
type books struct{ orders, steps, events, dead int64 }

func (s *shop) count(ctx context.Context) (b books, err error) {
	if err := s.pool.QueryRow(ctx, countSQL).Scan(&b.orders, &b.steps, &b.events, &b.dead); err != nil {
		return b, fmt.Errorf("count orders and events: %w", err)
	}
	return b, nil
}
