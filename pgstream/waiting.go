package pgstream

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/internal/sqlplan"
)

// Waiting is what waits for a subscription, and who could take it.
type Waiting struct {
	// Subscription is its name.
	Subscription string
	// Relays is how many relays of it are alive, and Closed how many of them wait for their destination.
	Relays, Closed int
	// UnreadFor is the age of the oldest unread event; zero if there is none.
	UnreadFor time.Duration
	// DueFor is for how long the first parked event has been due; zero if none is.
	DueFor time.Duration
	// Expired is how many shards have an owner whose lease is over, and ExpiredFor for how long
	// the first one's has been.
	Expired    int
	ExpiredFor time.Duration
}

// waitingSQL asks what Waiting answers. $1 subscription.
const waitingSQL = `
SELECT (SELECT count(*) FROM {relays} AS r WHERE r.subscription = $1 AND ` + present + `),
  (SELECT count(*) FROM {relays} AS r WHERE r.subscription = $1 AND ` + waits + `),
  coalesce(extract(epoch FROM now() - (SELECT min(o.created_at) FROM {shards} AS c CROSS JOIN LATERAL (
    SELECT e.created_at FROM ` + unread + ` AS e WHERE true%[1]s LIMIT 1) AS o
    WHERE c.subscription = $1)), 0)::float8,
  greatest(coalesce(extract(epoch FROM now() - (SELECT min(next_attempt_at) FROM {parked}
    WHERE subscription = $1 AND state = 'retry')), 0), 0)::float8,
  (SELECT count(*) FROM {shards} WHERE subscription = $1 AND owner IS NOT NULL AND locked_until < now()),
  coalesce(extract(epoch FROM now() - (SELECT min(locked_until) FROM {shards}
    WHERE subscription = $1 AND owner IS NOT NULL AND locked_until < now())), 0)::float8`

// Waiting reads what waits for each subscription. It, Blocked and Ring plan the transaction's
// statements by indexes.
func (s Stream) Waiting(ctx context.Context, tx pgx.Tx) ([]Waiting, error) {
	if _, err := tx.Exec(ctx, sqlplan.ByIndex); err != nil {
		return nil, fmt.Errorf("outbox: look for events that wait: %w", err)
	}
	subscriptions, err := s.subscriptions(ctx, tx, "ready")
	if err != nil {
		return nil, err
	}
	list := make([]Waiting, len(subscriptions))
	for i := range subscriptions {
		sub, w := &subscriptions[i], &list[i]
		w.Subscription = sub.Name
		conditions, args := sub.Filter.Conditions(2)
		var unread, due, expired float64
		// Asked for its types, whatever the pool's way: a tenant is bytes.
		args = append([]any{pgx.QueryExecModeDescribeExec, sub.Name}, args...)
		err := tx.QueryRow(ctx, s.names(fmt.Sprintf(waitingSQL, conditions)), args...).
			Scan(&w.Relays, &w.Closed, &unread, &due, &w.Expired, &expired)
		if err != nil {
			return nil, fmt.Errorf("outbox: look for events of subscription %q that wait: %w", sub.Name, err)
		}
		w.UnreadFor, w.DueFor, w.ExpiredFor = fromSeconds(unread), fromSeconds(due), fromSeconds(expired)
	}
	return list, nil
}

func fromSeconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Blocked are the keys of a subscription that wait behind an event in one state.
type Blocked struct {
	// Subscription is its name.
	Subscription string
	// State is that of the events at the head: "dead", "held" or "retry".
	State string
	// Keys is how many keys have such a head, and Waiting how many events are behind them; both
	// counts stop, at 1,000 keys and 1,000 events of a key.
	Keys, Waiting int64
	// Key is one of them, and ID its head. LastError is what the head failed with.
	Key, ID, LastError string
	// Since is for how long the first of them has been parked.
	Since time.Duration
}

// blockedSQL finds the heads that others wait behind. What gates a key is at its head, unless
// something else is before it.
const blockedSQL = `
WITH head AS MATERIALIZED (
  SELECT p.subscription, p.shard, p.seq, p.key, p.id, p.state, p.last_error, p.parked_at FROM {parked} AS p
  WHERE p.gates AND p.key IS NOT NULL AND (p.state IN ('dead', 'held') OR p.state = 'retry' AND p.attempts > 0)
    AND NOT EXISTS (SELECT FROM {parked} AS b
      WHERE b.subscription = p.subscription AND b.shard = p.shard AND b.key = p.key AND b.gates AND b.seq < p.seq)
  LIMIT 1000
), blocked AS (
  SELECT head.*, behind.events FROM head CROSS JOIN LATERAL (
    SELECT count(*) AS events FROM (SELECT FROM {parked} AS w
      WHERE w.subscription = head.subscription AND w.shard = head.shard AND w.key = head.key AND w.gates AND w.seq > head.seq
      LIMIT 1000) AS w) AS behind
)
SELECT subscription, state, count(*), sum(events)::bigint, (array_agg(key ORDER BY parked_at))[1], (array_agg(id::text ORDER BY parked_at))[1],
  coalesce((array_agg(last_error ORDER BY parked_at))[1], ''), extract(epoch FROM now() - min(parked_at))::float8
FROM blocked WHERE events > 0 OR state <> 'retry'
GROUP BY subscription, state ORDER BY subscription, state`

// Blocked reads which keys wait, and behind what.
func (s Stream) Blocked(ctx context.Context, tx pgx.Tx) ([]Blocked, error) {
	if _, err := tx.Exec(ctx, sqlplan.ByIndex); err != nil {
		return nil, fmt.Errorf("outbox: look for keys that wait: %w", err)
	}
	rows, err := tx.Query(ctx, s.names(blockedSQL))
	if err != nil {
		return nil, fmt.Errorf("outbox: look for keys that wait: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (b Blocked, err error) {
		var since float64
		err = row.Scan(&b.Subscription, &b.State, &b.Keys, &b.Waiting, &b.Key, &b.ID, &b.LastError, &since)
		b.Since = fromSeconds(since)
		return b, err
	})
	if err != nil {
		return nil, fmt.Errorf("outbox: look for keys that wait: %w", err)
	}
	return list, nil
}
