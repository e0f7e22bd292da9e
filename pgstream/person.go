package pgstream

// What a person does to parked events.

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/packfinderz/outbox/internal/pgsession"
)

// Querier is a transaction, a connection or a pool.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// personSQL changes parked events that are in a state to another, and tells the relays. The
// shards are locked in the order of their numbers, as everybody does. %[1]s is which states,
// %[2]s what to set. $1 subscription, $2 ids.
//
// The events are found one by one, by their ids, and written by their place; the state is a
// CASE: with many dead events the planner would rather read them all, for each.
const personSQL = `
WITH picked AS MATERIALIZED (
  SELECT f.shard, f.at FROM unnest($2::uuid[]) AS u(id)
  CROSS JOIN LATERAL (SELECT f.subscription, f.shard, f.ctid AS at FROM {parked} AS f WHERE f.id = u.id OFFSET 0) AS f
  WHERE f.subscription = $1
), locked AS MATERIALIZED (
  SELECT c.shard FROM {shards} AS c
  WHERE c.subscription = $1 AND c.shard IN (SELECT shard FROM picked)
  ORDER BY c.shard
  FOR UPDATE
), changed AS (
  UPDATE {parked} AS p SET %[2]s, changed_at = now()
  FROM picked JOIN locked ON locked.shard = picked.shard
  WHERE p.ctid = picked.at AND CASE WHEN p.state IN (%[1]s) THEN true ELSE false END
  RETURNING p.shard, p.id
), told AS (
  UPDATE {shards} AS c SET parked_changes = c.parked_changes + 1
  WHERE c.subscription = $1 AND c.shard IN (SELECT shard FROM changed)
)
SELECT id FROM changed`

// change changes parked events and returns those that were in one of the states. doing is for the error.
func (s Stream) change(ctx context.Context, db Querier, doing, subscription, states, set string, ids []uuid.UUID) ([]uuid.UUID, error) {
	rows, _ := db.Query(ctx, s.names(fmt.Sprintf(personSQL, states, set)), subscription, pgsession.IDs(ids))
	changed, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (id uuid.UUID, err error) {
		return id, row.Scan((*[16]byte)(&id))
	})
	if err == nil && len(changed) > 0 {
		err = s.wake(ctx, db, aboutParked)
	}
	if err != nil {
		return nil, fmt.Errorf("outbox: %s: %w", doing, err)
	}
	return changed, nil
}

// Retry makes dead events of a subscription due now, with the same id and no attempts counted. It returns the ids of those
// that were dead. What waits behind one under DeadBlocks goes on waiting until it is delivered.
func (s Stream) Retry(ctx context.Context, db Querier, subscription string, ids ...uuid.UUID) ([]uuid.UUID, error) {
	return s.change(ctx, db, "retry dead events", subscription, `'dead'`, `state = 'retry', attempts = 0, next_attempt_at = now(), reason = NULL`, ids)
}

// Hold keeps parked events of a subscription from being published until Release: those that wait or are to be retried, and
// with each the later events of its key, if it gates the key. It returns the ids of those that are held now. One that a
// relay is publishing at this moment may still be delivered.
func (s Stream) Hold(ctx context.Context, db Querier, subscription string, ids ...uuid.UUID) ([]uuid.UUID, error) {
	return s.change(ctx, db, "hold parked events", subscription, `'retry', 'waiting', 'stopped'`, `state = 'held', next_attempt_at = NULL, route = NULL`, ids)
}

// Release makes held events of a subscription due. It returns the ids of those that were held.
func (s Stream) Release(ctx context.Context, db Querier, subscription string, ids ...uuid.UUID) ([]uuid.UUID, error) {
	return s.change(ctx, db, "release held events", subscription, `'held'`, `state = 'retry', next_attempt_at = now()`, ids)
}

// Retry makes dead events due again; see Stream.Retry.
func (s *Store) Retry(ctx context.Context, ids ...uuid.UUID) ([]uuid.UUID, error) {
	retried, err := s.stream.Retry(ctx, s.pool, s.config.Subscription, ids...)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.lookAt = time.Time{}
	s.mu.Unlock()
	return retried, nil
}
