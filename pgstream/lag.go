package pgstream

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/pgsession"
	"github.com/packfinderz/outbox/internal/sqlplan"
	"github.com/packfinderz/outbox/internal/streamsql"
)

// LagLimit is where Lag stops counting the unread events of a shard, so that it stays cheap with any backlog.
const LagLimit = outbox.StatsLimit / DefaultShards

// Lag is how far a subscription is behind, and why.
type Lag struct {
	// Subscription is its name.
	Subscription string `json:"subscription"`
	// Shards are its shards, by number.
	Shards []ShardLag `json:"shards"`
	// Parked counts the parked events by state.
	Parked map[string]int64 `json:"parked"`
	// Relays are the relays that are alive.
	Relays []RelayInfo `json:"relays"`
	// OldestTransaction is the server's longest-running transaction; nil if there is none, or if the role may not see it.
	OldestTransaction *Transaction `json:"oldestTransaction,omitempty"`
}

// ShardLag is how far one shard is behind.
type ShardLag struct {
	// Shard is its number.
	Shard int `json:"shard"`
	// Events counts the unread events; it stops at LagLimit, or at the limit of LagUpTo.
	Events int64 `json:"events"`
	// Seconds is the age of the oldest unread event.
	Seconds float64 `json:"seconds"`
	// WindowSeconds is the age of the open window, in seconds; zero if none is open.
	WindowSeconds float64 `json:"windowSeconds"`
	// Owner is the relay that owns it; empty if none does.
	Owner string `json:"owner,omitempty"`
	// LeaseSeconds is the time until the owner's lease ends, in seconds.
	LeaseSeconds float64 `json:"leaseSeconds"`
}

// RelayInfo is a relay that is alive.
type RelayInfo struct {
	// Worker is its id, Host and PID where it runs.
	Worker string `json:"worker"`
	Host   string `json:"host"`
	PID    int    `json:"pid"`
	// StartedAt is when it started.
	StartedAt time.Time `json:"startedAt"`
	// Waits is set while its destination accepts nothing: it owns no shards then.
	Waits bool `json:"waits,omitempty"`
}

// Transaction is a running transaction of the server.
type Transaction struct {
	// PID is its backend, and Seconds is how long it has run.
	PID     int     `json:"pid"`
	Seconds float64 `json:"seconds"`
	// State and Application are those of pg_stat_activity.
	State       string `json:"state"`
	Application string `json:"application"`
}

const (
	lagSQL = `
SELECT c.shard,
  (SELECT count(*) FROM (SELECT FROM ` + streamsql.Unread + ` AS e WHERE true%[1]s LIMIT $2) AS l),
  coalesce(extract(epoch FROM now() - (SELECT e.created_at FROM ` + streamsql.Unread + ` AS e WHERE true%[1]s LIMIT 1)), 0)::float8,
  CASE WHEN c.s2 IS NULL THEN 0 ELSE extract(epoch FROM now() - c.opened_at) END::float8,
  coalesce(c.owner::text, ''),
  greatest(coalesce(extract(epoch FROM c.locked_until - now()), 0), 0)::float8
FROM {shards} AS c WHERE c.subscription = $1 ORDER BY c.shard`

	parkedCountSQL = `SELECT state, count(*) FROM {parked} WHERE subscription = $1 GROUP BY state`

	relaysSQL = `
SELECT r.worker::text, r.host, r.pid, r.started_at, ` + streamsql.Waits + ` FROM {relays} AS r WHERE r.subscription = $1 AND ` + streamsql.Present + ` ORDER BY r.started_at, r.worker`
)

// Lag reads how far a subscription is behind.
func (s Stream) Lag(ctx context.Context, pool *pgxpool.Pool, name string) (*Lag, error) {
	return s.LagUpTo(ctx, pool, name, LagLimit)
}

// LagUpTo is like Lag, but counts up to limit unread events of a shard.
func (s Stream) LagUpTo(ctx context.Context, pool *pgxpool.Pool, name string, limit int) (*Lag, error) {
	subscription, err := s.FindSubscription(ctx, pool, name)
	if err != nil {
		return nil, err
	}
	lag := &Lag{Subscription: name, Parked: map[string]int64{stateRetry: 0, stateWaiting: 0, stateStopped: 0, stateDead: 0, stateHeld: 0}}
	err = pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sqlplan.ByIndex); err != nil {
			return err
		}
		return s.readLag(ctx, tx, subscription, limit, lag)
	})
	if err != nil {
		return nil, fmt.Errorf("outbox: read the lag of subscription %q: %w", name, err)
	}
	return lag, nil
}

func (s Stream) readLag(ctx context.Context, tx pgx.Tx, subscription *Subscription, limit int, lag *Lag) error {
	conditions, args := subscription.Filter.conditions(3)
	rows, _ := tx.Query(ctx, s.names(fmt.Sprintf(lagSQL, conditions)), append([]any{lag.Subscription, limit}, args...)...)
	var err error
	if lag.Shards, err = pgx.CollectRows(rows, pgx.RowToStructByPos[ShardLag]); err != nil {
		return err
	}
	rows, _ = tx.Query(ctx, s.names(parkedCountSQL), lag.Subscription)
	var state string
	var count int64
	if _, err := pgx.ForEachRow(rows, []any{&state, &count}, func() error {
		lag.Parked[state] = count
		return nil
	}); err != nil {
		return err
	}
	rows, _ = tx.Query(ctx, s.names(relaysSQL), lag.Subscription)
	lag.Relays, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (r RelayInfo, err error) {
		err = row.Scan(&r.Worker, &r.Host, &r.PID, &r.StartedAt, &r.Waits)
		r.StartedAt = r.StartedAt.UTC()
		return r, err
	})
	if err != nil {
		return err
	}
	oldest, err := pgsession.OldestTransaction(ctx, tx)
	lag.OldestTransaction = (*Transaction)(oldest)
	return err
}
