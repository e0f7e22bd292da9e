package table

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/pgsession"
	"github.com/packfinderz/outbox/internal/sqlplan"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/ops/internal/query"
	"github.com/packfinderz/outbox/ops/view"
	"github.com/packfinderz/outbox/pgstream"
)

// Overview is the table's present state. Numbers above query.CountLimit are the planner's estimates.
func (t *Table) Overview(ctx context.Context, o *view.Overview) error {
	err := query.ByIndex(ctx, t.pool, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, "SELECT now()").Scan(&o.At); err != nil {
			return err
		}
		for _, part := range []func(context.Context, pgx.Tx, *view.Overview) error{t.waiting, t.leased, t.ended, t.rate} {
			if err := part(ctx, tx, o); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	oldest, err := pgsession.OldestTransaction(ctx, t.pool)
	o.OldestTransaction = (*pgstream.Transaction)(oldest)
	return err
}

// waiting counts the rows that wait, by state, topic, type and tenant, oldest first as far as the claim's index
// reaches.
func (t *Table) waiting(ctx context.Context, tx pgx.Tx, o *view.Overview) error {
	c := &t.layout.Columns
	const name = "coalesce(%s::text, '')"
	sql := fmt.Sprintf(`
WITH waiting AS MATERIALIZED (
  SELECT * FROM (
    SELECT %s AS state, %s AS topic, %s AS type, %s AS tenant, %s AS created
    FROM (SELECT t.* FROM %s AS t WHERE %s ORDER BY %s LIMIT %d) AS t
  ) AS waiting WHERE state <> 'dead'
)
SELECT CASE WHEN grouping(state) = 0 THEN 'state' WHEN grouping(topic) = 0 THEN 'topic' WHEN grouping(type) = 0 THEN 'type' ELSE 'tenant' END,
  coalesce(state, topic, type, tenant, ''), count(*), coalesce(extract(epoch FROM now() - min(created) FILTER (WHERE isfinite(created))), 0)::float8,
  (SELECT count(*) FROM waiting)
FROM waiting
GROUP BY GROUPING SETS ((state), (topic), (type), (tenant))`,
		t.state(), orElse(c.Topic, name, "''"), orElse(c.Type, name, "''"), orElse(c.TenantID, name, "''"), col(c.CreatedAt),
		t.layout.Events(), t.layout.Pending(col), col(t.layout.Order()), query.CountLimit)
	rows, _ := tx.Query(ctx, sql, query.Unprepared) // the rows say what failed
	total, err := query.Shares(rows, o)
	if err != nil {
		return err
	}
	o.Backlog.N = total
	for _, field := range []struct {
		column layouts.Column
		shares *[]view.Share
	}{{c.Topic, &o.ByTopic}, {c.Type, &o.ByType}, {c.TenantID, &o.ByTenant}} {
		if field.column.IsZero() {
			*field.shares = nil
		}
	}
	var looked int64
	if err := tx.QueryRow(ctx, t.countUpTo(t.layout.Pending(col)), query.Unprepared).Scan(&looked); err != nil || looked < query.CountLimit {
		return err
	}
	// The counted events are the first in line, which says little about the proportions.
	o.Sampled = true
	for state, count := range o.ByState {
		if count.N > 0 {
			o.ByState[state] = view.Count{N: count.N, AtLeast: true}
		}
	}
	estimate, err := t.estimate(ctx, tx, t.layout.Pending(col))
	o.Backlog = view.Count{N: max(estimate, o.Backlog.N), Estimate: true}
	return err
}

func (t *Table) countUpTo(condition string) string {
	return fmt.Sprintf("SELECT count(*) FROM (SELECT FROM %s AS t WHERE %s LIMIT %d) AS t", t.layout.Events(), condition, query.CountLimit)
}

// estimate returns the number of rows that the planner expects for a condition.
func (t *Table) estimate(ctx context.Context, tx pgx.Tx, condition string) (int64, error) {
	p, err := sqlplan.Explain(ctx, tx, fmt.Sprintf("SELECT FROM %s AS t WHERE %s", t.layout.Events(), condition), query.Unprepared)
	if err != nil {
		return 0, err
	}
	return int64(p.Rows), nil
}

// leased counts the rows under a lease, by relay.
func (t *Table) leased(ctx context.Context, tx pgx.Tx, o *view.Overview) error {
	if t.layout.Hold != layouts.HoldLease {
		o.RelaysUnknown = "the rows of this table do not say which relay holds them"
		return nil
	}
	c := &t.layout.Columns
	rows, _ := tx.Query(ctx, fmt.Sprintf(`
SELECT coalesce(worker, ''), count(*), coalesce(extract(epoch FROM max(until) - now()), 0)::float8,
  coalesce(extract(epoch FROM now() - min(created) FILTER (WHERE isfinite(created))), 0)::float8
FROM (SELECT %s::text AS worker, %s AS until, %s AS created FROM %s AS t WHERE %s LIMIT %d) AS leased
GROUP BY worker ORDER BY worker`, col(c.LockedBy), col(c.LockedUntil), col(c.CreatedAt), t.layout.Events(), t.layout.Leased(col), query.CountLimit), query.Unprepared) // the rows say what failed
	var relay view.Relay
	var oldest float64
	var total int64
	_, err := pgx.ForEachRow(rows, []any{&relay.Worker, &relay.Holds, &relay.LeaseSeconds, &oldest}, func() error {
		total += int64(relay.Holds)
		o.OldestSeconds = max(o.OldestSeconds, oldest)
		if relay.LeaseSeconds > 0 {
			o.Relays = append(o.Relays, relay)
		}
		return nil
	})
	o.ByState[view.StateClaimed] = view.Count{N: total, AtLeast: total >= query.CountLimit}
	o.Backlog.N += total
	return err
}

func (t *Table) ended(ctx context.Context, tx pgx.Tx, o *view.Overview) error {
	var size int64
	if err := tx.QueryRow(ctx, "SELECT pg_relation_size(to_regclass($1))", t.layout.Events()).Scan(&size); err != nil {
		return err
	}
	small := size <= query.SmallTable
	dead, err := t.countDead(ctx, tx, small)
	if err != nil {
		return err
	}
	o.ByState[view.StateDead] = dead
	if !small {
		n, err := t.estimate(ctx, tx, t.layout.Delivered())
		o.ByState[view.StateDelivered] = view.Count{N: n, Estimate: true}
		return err
	}
	var n int64
	err = tx.QueryRow(ctx, t.countUpTo(t.layout.Delivered()), query.Unprepared).Scan(&n)
	o.ByState[view.StateDelivered] = view.Count{N: n, AtLeast: n >= query.CountLimit}
	return err
}

func (t *Table) countDead(ctx context.Context, tx pgx.Tx, small bool) (view.Count, error) {
	dead := &view.Filter{State: view.StateDead}
	w := &t.candidates(dead)[0]
	if !small && !w.letters {
		var err error
		if w, err = t.choose(ctx, tx, dead, nil); err != nil {
			return view.Count{}, err
		}
		if w.byID() { // no index serves dead rows
			n, err := t.estimate(ctx, tx, t.layout.Dead())
			return view.Count{N: n, Estimate: true}, err
		}
	}
	var args query.Args
	var n int64
	err := tx.QueryRow(ctx, "SELECT count(*) FROM ("+t.rows(w, "", false, nil, query.CountLimit, &args)+") AS t", args.All()...).Scan(&n)
	return view.Count{N: n, AtLeast: n >= query.CountLimit}, err
}

// rate counts the rows delivered in the last minute, if an index serves that.
func (t *Table) rate(ctx context.Context, tx pgx.Tx, o *view.Overview) error {
	c := &t.layout.Columns
	const minute = "%s > now() - interval '1 min'"
	var recent, found string
	switch {
	case !c.DeliveredAt.IsZero():
		recent, found = fmt.Sprintf(minute, col(c.DeliveredAt)), "true"
	case c.NextAttemptAt.NotNull && !c.UpdatedAt.IsZero():
		// The index has the due times of rows; it misses rows delivered long after.
		recent, found = col(c.NextAttemptAt)+" > now() - interval '10 min'", fmt.Sprintf(minute, col(c.UpdatedAt))
	default:
		return nil
	}
	some := fmt.Sprintf("SELECT t.* FROM %s AS t WHERE %s LIMIT %d", t.layout.Events(), query.And(t.layout.Delivered(), recent), query.CountLimit)
	p, err := sqlplan.Explain(ctx, tx, some, query.Unprepared)
	if err != nil || !p.Finds() {
		return err
	}
	var n, looked int64
	if err := tx.QueryRow(ctx, fmt.Sprintf("SELECT count(*) FILTER (WHERE %s), count(*) FROM (%s) AS t", found, some), query.Unprepared).Scan(&n, &looked); err != nil {
		return err
	}
	o.Delivered = &view.Count{N: n, AtLeast: looked >= query.CountLimit, Estimate: c.DeliveredAt.IsZero()}
	return nil
}

// Stats counts the table's events.
func (t *Table) Stats(ctx context.Context, s *view.Stats) error {
	stats, err := t.store.Stats(ctx)
	s.Totals = &view.Totals{
		Layout: t.layout.Name, Due: stats.Due, Scheduled: stats.Scheduled, Retrying: stats.Retrying, Held: stats.Held,
		Dead: stats.Dead, Exhausted: stats.Exhausted, OldestSeconds: stats.OldestAge.Seconds(),
	}
	if stats.Strays != outbox.NotCounted {
		s.Strays = &stats.Strays
	}
	return err
}
