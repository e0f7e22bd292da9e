package stream

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/internal/streamsql"
	"github.com/packfinderz/outbox/ops/internal/query"
	"github.com/packfinderz/outbox/ops/view"
	"github.com/packfinderz/outbox/pgstream"
)

// lagLimit is how many unread events of a shard are counted at most.
const lagLimit = query.CountLimit / 8

// Overview is the subscription's present state.
func (s *Subscription) Overview(ctx context.Context, o *view.Overview) error {
	// Ask before the transaction: a pool may have a single connection.
	is, err := s.stream.FindSubscription(ctx, s.pool, s.name)
	if err != nil {
		return err
	}
	if o.Lag, err = s.stream.LagUpTo(ctx, s.pool, s.name, lagLimit); err != nil {
		return err
	}
	o.OldestTransaction = o.Lag.OldestTransaction
	s.relays(o)
	return query.ByIndex(ctx, s.pool, func(tx pgx.Tx) error {
		for _, part := range []func(context.Context, pgx.Tx, *view.Overview) error{s.backlog, s.stopped, s.delivered} {
			if err := part(ctx, tx, o); err != nil {
				return err
			}
		}
		return s.shares(ctx, tx, is, o)
	})
}

// relays adds the live relays with their shards.
func (s *Subscription) relays(o *view.Overview) {
	for i := range o.Lag.Relays {
		is := &o.Lag.Relays[i]
		relay := view.Relay{Worker: is.Worker, Host: is.Host, PID: is.PID, StartedAt: is.StartedAt, Waits: is.Waits}
		for j := range o.Lag.Shards {
			if shard := &o.Lag.Shards[j]; shard.Owner == is.Worker {
				relay.Holds++
				relay.LeaseSeconds = max(relay.LeaseSeconds, shard.LeaseSeconds)
			}
		}
		o.Relays = append(o.Relays, relay)
	}
}

// parkedSQL counts parked events by state, and recent failures. $1 subscription, $2 limit.
const parkedSQL = `
SELECT ` + parkedState + `, count(*), coalesce(extract(epoch FROM now() - min(created_at)), 0)::float8,
  count(*) FILTER (WHERE attempts > 0 AND changed_at > now() - interval '1 min')
FROM (SELECT state, next_attempt_at, attempts, created_at, changed_at FROM {parked} WHERE subscription = $1 LIMIT $2) AS p
GROUP BY 1`

func (s *Subscription) backlog(ctx context.Context, tx pgx.Tx, o *view.Overview) error {
	var unread view.Count
	for i := range o.Lag.Shards {
		shard := &o.Lag.Shards[i]
		unread.N += shard.Events
		unread.AtLeast = unread.AtLeast || shard.Events >= lagLimit
		o.OldestSeconds = max(o.OldestSeconds, shard.Seconds)
	}
	if unread.AtLeast {
		// Seqs are numbered through all shards, with few gaps.
		sql := streamsql.Names(s.stream.Schema, `SELECT coalesce(pg_sequence_last_value({'stream_seq'}), 0) - coalesce(min(greatest(q1, pos)), 0) FROM {shards} WHERE subscription = $1`)
		var behind int64
		if err := tx.QueryRow(ctx, sql, s.name).Scan(&behind); err != nil {
			return err
		}
		unread = view.Count{N: max(behind, unread.N), Estimate: true}
	}
	o.ByState[view.StateDue], o.Backlog = unread, unread
	rows, _ := tx.Query(ctx, streamsql.Names(s.stream.Schema, parkedSQL), query.Unprepared, s.name, query.CountLimit) // the rows say what failed
	var state view.State
	var n, failed, parked int64
	var oldest float64
	o.Failed = &view.Count{}
	_, err := pgx.ForEachRow(rows, []any{&state, &n, &oldest, &failed}, func() error {
		parked += n
		o.Failed.N += failed
		count := o.ByState[state]
		count.N += n
		o.ByState[state] = count
		if state != view.StateDead {
			o.Backlog.N += n
			o.OldestSeconds = max(o.OldestSeconds, oldest)
		}
		return nil
	})
	if err != nil || parked < query.CountLimit {
		return err
	}
	// There are more parked events than were counted here; Lag has counted them by state.
	o.Failed.AtLeast = true
	for _, state := range []view.State{view.StateWaiting, view.StateStopped, view.StateHeld, view.StateDead} {
		o.ByState[state] = view.Count{N: o.Lag.Parked[string(state)]}
	}
	retry := o.ByState[view.StateRetrying]
	o.ByState[view.StateRetrying] = view.Count{N: retry.N, AtLeast: true}
	o.Backlog.N = unread.N + o.Lag.Parked["retry"] + o.Lag.Parked["waiting"] + o.Lag.Parked["stopped"] + o.Lag.Parked["held"]
	return nil
}

// stoppedSQL counts the events that wait for a topic. $1 subscription, $2 limit.
const stoppedSQL = `
SELECT route, count(*), coalesce(extract(epoch FROM now() - min(created_at)), 0)::float8, coalesce((array_agg(last_error ORDER BY changed_at DESC))[1], '')
FROM (SELECT route, created_at, changed_at, last_error FROM {parked} WHERE subscription = $1 AND state = 'stopped' LIMIT $2) AS p
GROUP BY route ORDER BY count(*) DESC, route`

func (s *Subscription) stopped(ctx context.Context, tx pgx.Tx, o *view.Overview) (err error) {
	rows, _ := tx.Query(ctx, streamsql.Names(s.stream.Schema, stoppedSQL), query.Unprepared, s.name, query.CountLimit) // the rows say what failed
	o.Stopped, err = pgx.CollectRows(rows, pgx.RowToStructByPos[view.StoppedTopic])
	return err
}

// deliveredSQL estimates how many events the slots hold, and how far the cursors moved in the last minute. Of pages
// outside the cursors' way it only knows that each had an event. $1 subscription.
const deliveredSQL = `
SELECT now(), slots.*,
  (SELECT coalesce(max(to_seq) FILTER (WHERE part = 'main') - min(from_seq) FILTER (WHERE part = 'main') + 1, 0)
      + count(*) FILTER (WHERE part <> 'main')
    FROM {deliveries} WHERE subscription = $1 AND settled_at > now() - interval '1 min')
FROM (
  SELECT coalesce(sum(greatest(c.reltuples, 0)), 0)::bigint, coalesce(sum(pg_relation_size(c.oid)), 0)::bigint
  FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid WHERE i.inhparent = to_regclass($2)
) AS slots`

// delivered fills in estimates: a page records where it began and ended, not how many events it had.
func (s *Subscription) delivered(ctx context.Context, tx pgx.Tx, o *view.Overview) error {
	var kept, size, minute int64
	err := tx.QueryRow(ctx, streamsql.Names(s.stream.Schema, deliveredSQL), query.Unprepared, s.name, streamsql.Names(s.stream.Schema, "{stream}")).Scan(&o.At, &kept, &size, &minute)
	if err != nil {
		return err
	}
	if size <= query.SmallTable { // the statistics of a small log are often missing
		if err := tx.QueryRow(ctx, streamsql.Names(s.stream.Schema, `SELECT count(*) FROM {stream}`)).Scan(&kept); err != nil {
			return err
		}
	}
	o.ByState[view.StateDelivered] = view.Count{N: max(kept-o.Backlog.N-o.ByState[view.StateDead].N, 0), Estimate: true}
	o.Delivered = &view.Count{N: minute, Estimate: true}
	return nil
}

// sharesSQL divides the backlog: unread events, oldest first, and parked ones. $1 subscription, $2
// how many of each.
const sharesSQL = `
WITH waiting AS MATERIALIZED (
  SELECT e.* FROM {shards} AS c CROSS JOIN LATERAL (
    SELECT e.topic, e.type, coalesce(e.tenant_id::text, '') AS tenant, e.created_at AS created
    FROM {unread} AS e WHERE true%s LIMIT $2
  ) AS e
  WHERE c.subscription = $1
  UNION ALL
  (SELECT p.topic, p.type, coalesce(p.tenant_id::text, ''), p.created_at
   FROM {parked} AS p WHERE p.subscription = $1 AND p.state <> 'dead' LIMIT $2)
)
SELECT CASE WHEN grouping(topic) = 0 THEN 'topic' WHEN grouping(type) = 0 THEN 'type' ELSE 'tenant' END,
  coalesce(topic, type, tenant), count(*), coalesce(extract(epoch FROM now() - min(created)), 0)::float8, (SELECT count(*) FROM waiting)
FROM waiting
GROUP BY GROUPING SETS ((topic), (type), (tenant))`

func (s *Subscription) shares(ctx context.Context, tx pgx.Tx, is *pgstream.Subscription, o *view.Overview) error {
	args := query.Args{s.name, lagLimit}
	sql := streamsql.Names(s.stream.Schema, fmt.Sprintf(sharesSQL, mine(is, &args)))
	rows, _ := tx.Query(ctx, sql, args.All()...) // the rows say what failed
	total, err := query.Shares(rows, o)
	o.Sampled = total > 0 && total < o.Backlog.N
	return err
}

// Stats counts each shard's unread events.
func (s *Subscription) Stats(ctx context.Context, stats *view.Stats) (err error) {
	stats.Lag, err = s.stream.Lag(ctx, s.pool, s.name)
	stats.Overview.Lag, stats.Overview.OldestTransaction = nil, nil // Stats has its own
	return err
}
