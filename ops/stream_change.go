package ops

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/pgstream"
)

// parkedChange is something done to parked events of a subscription.
type parkedChange struct {
	operation Operation
	// states are those that it changes, as SQL on a row p.
	states string
	do     func(ctx context.Context, db pgstream.Querier, subscription string, ids ...uuid.UUID) ([]uuid.UUID, error)
}

// Retry brings dead events of the subscription back.
func (s *subscription) Retry(ctx context.Context, filter Filter, change Change) (*Result, error) {
	filter.State = StateDead
	return s.changeParked(ctx, filter, change, parkedChange{OperationRetry, parkedBase(StateDead), s.stream.Retry})
}

// Hold holds events that are parked to be retried, or wait.
func (s *subscription) Hold(ctx context.Context, filter Filter, change Change) (*Result, error) {
	if filter.Empty() {
		return nil, fmt.Errorf("outbox: say what to hold: an id or a key: %w", ErrFilter)
	}
	return s.changeParked(ctx, filter, change, parkedChange{OperationHold, "p.state IN ('retry', 'waiting')", s.stream.Hold})
}

// Release makes held events due.
func (s *subscription) Release(ctx context.Context, filter Filter, change Change) (*Result, error) {
	filter.State = StateHeld
	return s.changeParked(ctx, filter, change, parkedChange{OperationRelease, parkedBase(StateHeld), s.stream.Release})
}

// changeParked goes through the parked events that a filter names, shard by shard.
func (s *subscription) changeParked(ctx context.Context, filter Filter, change Change, c parkedChange) (*Result, error) {
	if err := begin(ctx, s.pool, &filter, &s.description, c.operation, &change); err != nil {
		return nil, err
	}
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	if _, err := s.stream.FindSubscription(ctx, s.pool, s.name); err != nil {
		return nil, err
	}
	if change.DryRun {
		return s.countParked(ctx, &filter, change, c)
	}
	shard, seq := int16(-1), int64(0)
	result, err := s.log.run(ctx, job{
		operation: c.operation, change: change, request: auditRequest{Filter: filter, Before: change.Before}, keepIDs: len(filter.IDs) > 0,
		step: func(ctx context.Context, tx pgx.Tx) (ids []uuid.UUID, more bool, err error) {
			if _, err := tx.Exec(ctx, byIndexSQL); err != nil {
				return nil, false, err
			}
			args := arguments{s.name, change.Before, shard, seq}
			sql := fmt.Sprintf(`SELECT p.id, p.shard, p.seq FROM {parked} AS p WHERE %s AND (p.shard, p.seq) > ($3, $4) ORDER BY p.shard, p.seq LIMIT %d`,
				s.parkedWhere(&filter, c, &args), change.BatchSize)
			rows, err := tx.Query(ctx, s.stream.SQL(sql), args.all()...)
			if err != nil {
				return nil, false, err
			}
			var id uuid.UUID
			if _, err := pgx.ForEachRow(rows, []any{(*[16]byte)(&id), &shard, &seq}, func() error {
				ids = append(ids, id)
				return nil
			}); err != nil || len(ids) == 0 {
				return nil, false, err
			}
			more = len(ids) == change.BatchSize
			ids, err = c.do(ctx, tx, s.name, ids...)
			return ids, more, err
		},
	})
	if result != nil && result.Events > 0 {
		_ = pgstream.Wake(context.WithoutCancel(ctx), s.pool, s.stream) // if it fails relays poll
	}
	return result, s.wrap(string(c.operation), err)
}

// parkedWhere are the events of a change; $1 is the subscription, $2 since when they must have
// been in their state.
func (s *subscription) parkedWhere(f *Filter, c parkedChange, args *arguments) string {
	state := ""
	if c.operation == OperationHold {
		state = parkedState
	}
	return both("p.subscription = $1 AND p.changed_at < $2 AND "+c.states, conditions(f, "p", state, args))
}

func (s *subscription) countParked(ctx context.Context, f *Filter, change Change, c parkedChange) (*Result, error) {
	args := arguments{s.name, change.Before}
	sql := fmt.Sprintf(`SELECT count(*) FROM (SELECT FROM {parked} AS p WHERE %s LIMIT %d) AS p`, s.parkedWhere(f, c, &args), outbox.StatsLimit)
	result := &Result{DryRun: true, Before: change.Before}
	if err := s.pool.QueryRow(ctx, s.stream.SQL(sql), args.all()...).Scan(&result.Events); err != nil {
		return nil, s.wrap("count events", err)
	}
	result.AtLeast = result.Events >= outbox.StatsLimit
	return result, nil
}

// Replay parks copies of delivered events for the subscription's relay.
func (s *subscription) Replay(ctx context.Context, filter Filter, replay Replay) (*Result, error) {
	filter.State = StateDelivered
	if err := begin(ctx, s.pool, &filter, &s.description, OperationReplay, &replay.Change); err != nil {
		return nil, err
	}
	switch {
	case replay.Publisher != nil:
		return nil, fmt.Errorf("outbox: a stream's relay publishes replayed events itself, so there is no other destination: %w", ErrFilter)
	case filter.Error != "":
		return nil, fmt.Errorf("outbox: a delivered event has no error to look for: %w", ErrFilter)
	}
	again := pgstream.Replay{
		Subscription: s.name, IDs: filter.IDs, Since: filter.Since, Until: filter.Until,
		Key: filter.Key, Type: filter.Type, Topic: filter.Topic, Namespace: filter.Namespace,
		AggregateType: filter.AggregateType, AggregateID: filter.AggregateID, TenantID: filter.TenantID,
		Rate: replay.Rate, DryRun: replay.DryRun, Progress: replay.Progress,
	}
	result := &Result{DryRun: replay.DryRun}
	var err error
	if replay.DryRun {
		result.Events, err = s.stream.Replay(ctx, s.pool, again)
		return result, err
	}
	entry, err := s.log.open(ctx, OperationReplay, replay.Change, auditRequest{Filter: filter, Rate: replay.Rate}, result)
	if err != nil {
		return nil, err
	}
	if entry != 0 {
		again.Step = func(ctx context.Context, tx pgx.Tx, ids []uuid.UUID) error {
			return s.log.note(ctx, tx, entry, int64(len(ids)), ids)
		}
	}
	result.Events, err = s.stream.Replay(ctx, s.pool, again)
	if ctx.Err() != nil && err != nil {
		result.Interrupted, err = true, nil
	}
	if result.Events > 0 {
		_ = pgstream.Wake(context.WithoutCancel(ctx), s.pool, s.stream) // if it fails relays poll
	}
	return result, s.log.close(ctx, entry, result, err)
}

// Purge empties slots of the ring, and deletes dead events if they have a retention.
func (s *subscription) Purge(ctx context.Context, purge outbox.Purge, change Change) (*Result, error) {
	store, err := pgstream.Open(ctx, s.pool, s.stream, pgstream.Config{Subscription: s.name, Logger: change.Logger})
	if err != nil {
		return nil, err
	}
	defer store.Close()
	return s.log.purge(ctx, store, purge, change)
}
