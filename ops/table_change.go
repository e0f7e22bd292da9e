package ops

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/pgstore"
)

// Retry brings dead events of the table back.
func (t *table) Retry(ctx context.Context, filter Filter, change Change) (*Result, error) {
	filter.State = StateDead
	if err := begin(ctx, t.pool, &filter, &t.description, OperationRetry, &change); err != nil {
		return nil, err
	}
	if change.DryRun {
		return t.count(ctx, &filter, change)
	}
	next := request{filter: &filter, ascending: true, want: change.BatchSize, limit: scanLimit, before: change.Before}
	var w *walk
	result, err := t.log.run(ctx, job{
		operation: OperationRetry, change: change, request: auditRequest{Filter: filter, Before: change.Before}, keepIDs: len(filter.IDs) > 0,
		step: func(ctx context.Context, tx pgx.Tx) (ids []uuid.UUID, more bool, err error) {
			s, err := t.stepIn(ctx, tx, &w, &next)
			if err != nil || len(s.events) == 0 {
				return nil, s.last != nil, err
			}
			ids, err = t.store.RetryIn(ctx, tx, eventIDs(s.events)...)
			return ids, s.last != nil, err
		},
	})
	if result != nil && result.Events > 0 {
		_ = pgstore.Wake(context.WithoutCancel(ctx), t.pool, t.layout) // if it fails relays poll
	}
	return result, t.wrap("retry dead events", err)
}

// stepIn goes one step of a walk, which it chooses first, and moves the request on.
func (t *table) stepIn(ctx context.Context, tx pgx.Tx, w **walk, next *request) (*step, error) {
	if _, err := tx.Exec(ctx, byIndexSQL); err != nil {
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

func eventIDs(events []Event) []uuid.UUID {
	ids := make([]uuid.UUID, len(events))
	for i := range events {
		ids[i] = events[i].ID
	}
	return ids
}

// count is a dry run: it goes through the events and changes none.
func (t *table) count(ctx context.Context, filter *Filter, change Change) (*Result, error) {
	result := &Result{DryRun: true, Before: change.Before}
	next := request{filter: filter, ascending: true, want: scanLimit, limit: scanLimit, before: change.Before}
	var w *walk
	for more := true; more; {
		err := pgx.BeginTxFunc(ctx, t.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			s, err := t.stepIn(ctx, tx, &w, &next)
			result.Events += int64(len(s.events))
			more = s.last != nil
			return err
		})
		if err != nil {
			return nil, t.wrap("count events", err)
		}
		if result.Events >= outbox.StatsLimit {
			result.AtLeast = more
			return result, nil
		}
	}
	return result, nil
}

// Hold is refused: a queue table has no state for it.
func (t *table) Hold(context.Context, Filter, Change) (*Result, error) {
	return nil, t.description.Check(OperationHold)
}

// Release is refused as Hold is.
func (t *table) Release(context.Context, Filter, Change) (*Result, error) {
	return nil, t.description.Check(OperationRelease)
}

// Purge deletes delivered rows, and dead letters if they have a retention.
func (t *table) Purge(ctx context.Context, purge outbox.Purge, change Change) (*Result, error) {
	if purge.DeadLetterRetention > 0 && t.layout.DeadLetter == nil {
		return nil, fmt.Errorf("outbox: %s has no dead-letter table, so it has no dead letters to purge: %w", t.description.Name, ErrUnsupported)
	}
	return t.log.purge(ctx, t.store, purge, change)
}
