package stream

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/streamsql"
	"github.com/packfinderz/outbox/ops/internal/query"
	"github.com/packfinderz/outbox/ops/view"
	"github.com/packfinderz/outbox/pgstream"
)

type parkedChange struct {
	// states is an SQL list of the states that it changes, on a row p.
	states string
	do     func(ctx context.Context, db pgstream.Querier, subscription string, ids ...uuid.UUID) ([]uuid.UUID, error)
}

func (s *Subscription) change(operation view.Operation) parkedChange {
	switch operation {
	case view.OperationHold:
		return parkedChange{"p.state IN ('retry', 'waiting')", s.stream.Hold}
	case view.OperationRelease:
		return parkedChange{parkedBase(view.StateHeld), s.stream.Release}
	default:
		return parkedChange{parkedBase(view.StateDead), s.stream.Retry}
	}
}

// Steps changes parked events, shard by shard.
func (s *Subscription) Steps(operation view.Operation, f *view.Filter, before time.Time, size int) view.Step {
	c := s.change(operation)
	shard, seq := int16(-1), int64(0)
	return func(ctx context.Context, tx pgx.Tx) (ids []uuid.UUID, more bool, err error) {
		if _, err := tx.Exec(ctx, query.ByIndexSQL); err != nil {
			return nil, false, err
		}
		args := query.Args{s.name, before, shard, seq}
		sql := fmt.Sprintf(`SELECT p.id, p.shard, p.seq FROM {parked} AS p WHERE %s AND (p.shard, p.seq) > ($3, $4) ORDER BY p.shard, p.seq LIMIT %d`,
			parkedWhere(f, c, &args), size)
		rows, _ := tx.Query(ctx, streamsql.Names(s.stream.Schema, sql), args.All()...) // the rows say what failed
		var id uuid.UUID
		if _, err := pgx.ForEachRow(rows, []any{(*[16]byte)(&id), &shard, &seq}, func() error {
			ids = append(ids, id)
			return nil
		}); err != nil || len(ids) == 0 {
			return nil, false, err
		}
		more = len(ids) == size
		ids, err = c.do(ctx, tx, s.name, ids...)
		return ids, more, err
	}
}

// parkedWhere selects the events of a change. $1 is the subscription, $2 the time before which they came into their state.
func parkedWhere(f *view.Filter, c parkedChange, args *query.Args) string {
	return query.And("p.subscription = $1 AND p.changed_at < $2 AND "+c.states, conditions(f, "p", parkedState, args))
}

// Count counts the events that an operation would change, up to outbox.StatsLimit.
func (s *Subscription) Count(ctx context.Context, operation view.Operation, f *view.Filter, before time.Time) (n int64, atLeast bool, err error) {
	if operation == view.OperationReplay {
		again := s.replay(f)
		again.DryRun = true
		n, err = s.stream.Replay(ctx, s.pool, again)
		return n, false, err
	}
	args := query.Args{s.name, before}
	sql := fmt.Sprintf(`SELECT count(*) FROM (SELECT FROM {parked} AS p WHERE %s LIMIT %d) AS p`,
		parkedWhere(f, s.change(operation), &args), outbox.StatsLimit)
	err = s.pool.QueryRow(ctx, streamsql.Names(s.stream.Schema, sql), args.All()...).Scan(&n)
	return n, n >= outbox.StatsLimit, err
}

// Replay parks copies of delivered events for the subscription's relay.
func (s *Subscription) Replay(ctx context.Context, f *view.Filter, replay view.Replay) (events int64, err error) {
	again := s.replay(f)
	again.Rate, again.Step, again.Progress = replay.Rate, replay.Note, replay.Progress
	return s.stream.Replay(ctx, s.pool, again)
}

func (s *Subscription) replay(f *view.Filter) pgstream.Replay {
	return pgstream.Replay{
		Subscription: s.name, IDs: f.IDs, Since: f.Since, Until: f.Until,
		Key: f.Key, Type: f.Type, Topic: f.Topic, Namespace: f.Namespace,
		AggregateType: f.AggregateType, AggregateID: f.AggregateID, TenantID: f.TenantID,
	}
}

// Purger opens a store of the subscription, which empties slots of the ring and deletes old dead events.
func (s *Subscription) Purger(ctx context.Context, _ outbox.Purge, log *slog.Logger) (store outbox.Store, done func(), err error) {
	opened, err := pgstream.Open(ctx, s.pool, s.stream, pgstream.Config{Subscription: s.name, Logger: log})
	if err != nil {
		return nil, nil, err
	}
	return opened, opened.Close, nil
}
