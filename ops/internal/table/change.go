package table

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/ops/internal/query"
	"github.com/packfinderz/outbox/ops/view"
)

// Steps retries dead events, the only change of a queue table that works in steps.
func (t *Table) Steps(_ view.Operation, f *view.Filter, before time.Time, size int) view.Step {
	next := request{filter: f, ascending: true, want: size, limit: query.ScanLimit, before: before}
	var w *walk
	return func(ctx context.Context, tx pgx.Tx) (ids []uuid.UUID, more bool, err error) {
		s, err := t.stepIn(ctx, tx, &w, &next)
		if err != nil || len(s.events) == 0 {
			return nil, s.last != nil, err
		}
		for i := range s.events {
			ids = append(ids, s.events[i].ID)
		}
		ids, err = t.store.RetryIn(ctx, tx, ids...)
		return ids, s.last != nil, err
	}
}

// stepIn takes one step of a walk and moves the request on. The first step chooses the walk.
func (t *Table) stepIn(ctx context.Context, tx pgx.Tx, w **walk, next *request) (*step, error) {
	if _, err := tx.Exec(ctx, query.ByIndexSQL); err != nil {
		return &step{}, err
	}
	if *w == nil {
		chosen, err := t.choose(ctx, tx, next.filter, nil)
		if err != nil {
			return &step{}, err
		}
		*w = chosen
	}
	s, err := t.look(ctx, tx, *w, *next)
	if err != nil {
		return &step{}, err
	}
	next.from = s.last
	return s, nil
}

// Count counts the events that an operation would change, up to outbox.StatsLimit.
func (t *Table) Count(ctx context.Context, _ view.Operation, f *view.Filter, before time.Time) (n int64, atLeast bool, err error) {
	next := request{filter: f, ascending: true, want: query.ScanLimit, limit: query.ScanLimit, before: before}
	var w *walk
	for more := true; more; {
		err := pgx.BeginTxFunc(ctx, t.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			s, err := t.stepIn(ctx, tx, &w, &next)
			n += int64(len(s.events))
			more = s.last != nil
			return err
		})
		if err != nil || n >= outbox.StatsLimit {
			return n, more, err
		}
	}
	return n, false, nil
}

// Purger returns the table's store. It refuses to purge dead letters if the layout has none.
func (t *Table) Purger(_ context.Context, purge outbox.Purge, _ *slog.Logger) (store outbox.Store, done func(), err error) {
	if purge.DeadLetterRetention > 0 && t.layout.DeadLetter == nil {
		return nil, nil, fmt.Errorf("outbox: %w: table %s has no dead-letter table to purge", view.ErrUnsupported, t.layout.Table)
	}
	return t.store, func() {}, nil
}
