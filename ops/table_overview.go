package ops

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/pgstore"
	"github.com/packfinderz/outbox/pgstream"
)

// maxShares is how many topics, types or tenants an overview lists.
const maxShares = 20

// Overview is how the table is doing. All it asks is bounded: what is more than countLimit is
// the planner's estimate.
func (t *table) Overview(ctx context.Context) (*Overview, error) {
	o := &Overview{ByState: make(map[State]Count), Relays: []Relay{}}
	for _, state := range t.description.States {
		o.ByState[state] = Count{}
	}
	err := byIndex(ctx, t.pool, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, "SELECT now()").Scan(&o.At); err != nil {
			return err
		}
		for _, part := range []func(context.Context, pgx.Tx, *Overview) error{t.waiting, t.leased, t.ended, t.rate} {
			if err := part(ctx, tx, o); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, t.wrap("look at the events", err)
	}
	o.At = o.At.UTC()
	if o.OldestTransaction, err = pgstream.OldestTransaction(ctx, t.pool); err != nil {
		return nil, err
	}
	return o, nil
}

// waiting counts the rows that wait, by state, topic, type and tenant, oldest first as far as
// the claim's index goes.
func (t *table) waiting(ctx context.Context, tx pgx.Tx, o *Overview) error {
	c := &t.layout.Columns
	due := c.NextAttemptAt
	if due.IsZero() {
		due = c.CreatedAt
	}
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
		t.is.Table, t.is.Pending, col(due), countLimit)
	rows, err := tx.Query(ctx, sql, onTheFly)
	if err != nil {
		return err
	}
	total, err := readShares(rows, o)
	if err != nil {
		return err
	}
	o.Backlog.N = total
	for _, field := range []struct {
		column pgstore.Column
		shares *[]Share
	}{{c.Topic, &o.ByTopic}, {c.Type, &o.ByType}, {c.TenantID, &o.ByTenant}} {
		if field.column.IsZero() {
			*field.shares = nil
		}
	}
	var looked int64
	if err := tx.QueryRow(ctx, t.countUpTo(t.is.Pending), onTheFly).Scan(&looked); err != nil || looked < countLimit {
		return err
	}
	// The counted ones are the first in line, so that they say little of the proportions.
	o.Sampled = true
	for state, count := range o.ByState {
		if count.N > 0 {
			o.ByState[state] = Count{N: count.N, AtLeast: true}
		}
	}
	estimate, err := t.estimate(ctx, tx, t.is.Pending)
	o.Backlog = Count{N: max(estimate, o.Backlog.N), Estimate: true}
	return err
}

// readShares reads parts of the backlog: by state, topic, type and tenant, each with its name,
// count and oldest age, and the count of all.
func readShares(rows pgx.Rows, o *Overview) (total int64, err error) {
	var kind string
	var share Share
	shares := map[string][]Share{}
	_, err = pgx.ForEachRow(rows, []any{&kind, &share.Name, &share.Count, &share.OldestSeconds, &total}, func() error {
		if kind == "state" {
			o.ByState[State(share.Name)] = Count{N: share.Count}
			o.OldestSeconds = max(o.OldestSeconds, share.OldestSeconds)
		} else {
			shares[kind] = append(shares[kind], share)
		}
		return nil
	})
	o.ByTopic, o.ByType, o.ByTenant = largest(shares["topic"]), largest(shares["type"]), largest(shares["tenant"])
	return total, err
}

// largest are the first shares.
func largest(list []Share) []Share {
	slices.SortFunc(list, func(a, b Share) int {
		if a.Count != b.Count {
			return int(b.Count - a.Count)
		}
		return strings.Compare(a.Name, b.Name)
	})
	return list[:min(len(list), maxShares)]
}

// countUpTo counts rows of a condition, and stops at countLimit.
func (t *table) countUpTo(condition string) string {
	return fmt.Sprintf("SELECT count(*) FROM (SELECT FROM %s AS t WHERE %s LIMIT %d) AS t", t.is.Table, condition, countLimit)
}

// estimate is how many rows the planner expects a condition to have.
func (t *table) estimate(ctx context.Context, tx pgx.Tx, condition string) (int64, error) {
	p, err := explain(ctx, tx, fmt.Sprintf("SELECT FROM %s AS t WHERE %s", t.is.Table, condition), nil)
	if err != nil {
		return 0, err
	}
	return int64(p.Rows), nil
}

// leased counts the rows under a lease, by relay.
func (t *table) leased(ctx context.Context, tx pgx.Tx, o *Overview) error {
	if t.layout.Hold != pgstore.HoldLease {
		o.RelaysUnknown = "the rows of this table do not say which relay holds them"
		return nil
	}
	c := &t.layout.Columns
	rows, err := tx.Query(ctx, fmt.Sprintf(`
SELECT coalesce(worker, ''), count(*), coalesce(extract(epoch FROM max(until) - now()), 0)::float8,
  coalesce(extract(epoch FROM now() - min(created) FILTER (WHERE isfinite(created))), 0)::float8
FROM (SELECT %s::text AS worker, %s AS until, %s AS created FROM %s AS t WHERE %s LIMIT %d) AS leased
GROUP BY worker ORDER BY worker`, col(c.LockedBy), col(c.LockedUntil), col(c.CreatedAt), t.is.Table, t.is.Leased, countLimit), onTheFly)
	if err != nil {
		return err
	}
	var relay Relay
	var oldest float64
	var total int64
	_, err = pgx.ForEachRow(rows, []any{&relay.Worker, &relay.Holds, &relay.LeaseSeconds, &oldest}, func() error {
		total += int64(relay.Holds)
		o.OldestSeconds = max(o.OldestSeconds, oldest)
		if relay.LeaseSeconds > 0 {
			o.Relays = append(o.Relays, relay)
		}
		return nil
	})
	o.ByState[StateClaimed] = Count{N: total, AtLeast: total >= countLimit}
	o.Backlog.N += total
	return err
}

// smallTable is up to how many bytes a table is simply counted.
const smallTable = 16 << 20

// ended counts the dead and the delivered rows.
func (t *table) ended(ctx context.Context, tx pgx.Tx, o *Overview) error {
	var size int64
	if err := tx.QueryRow(ctx, "SELECT pg_relation_size(to_regclass($1))", t.is.Table).Scan(&size); err != nil {
		return err
	}
	small := size <= smallTable
	dead, err := t.countDead(ctx, tx, small)
	if err != nil {
		return err
	}
	o.ByState[StateDead] = dead
	if !small {
		n, err := t.estimate(ctx, tx, t.is.Delivered)
		o.ByState[StateDelivered] = Count{N: n, Estimate: true}
		return err
	}
	var n int64
	err = tx.QueryRow(ctx, t.countUpTo(t.is.Delivered), onTheFly).Scan(&n)
	o.ByState[StateDelivered] = Count{N: n, AtLeast: n >= countLimit}
	return err
}

func (t *table) countDead(ctx context.Context, tx pgx.Tx, small bool) (Count, error) {
	w := t.candidates(&Filter{State: StateDead})[0]
	if !small && !w.letters {
		var err error
		var chosen *walk
		if chosen, err = t.choose(ctx, tx, &Filter{State: StateDead}, nil); err != nil {
			return Count{}, err
		}
		if chosen.byID() { // no index has the dead ones
			n, err := t.estimate(ctx, tx, t.is.Dead)
			return Count{N: n, Estimate: true}, err
		}
		w = *chosen
	}
	var args arguments
	var n int64
	err := tx.QueryRow(ctx, "SELECT count(*) FROM ("+t.rows(&w, "", false, nil, countLimit, &args)+") AS t", args.all()...).Scan(&n)
	return Count{N: n, AtLeast: n >= countLimit}, err
}

// rate is how many rows were delivered in the last minute, where an index tells.
func (t *table) rate(ctx context.Context, tx pgx.Tx, o *Overview) error {
	c := &t.layout.Columns
	const minute = "%s > now() - interval '1 min'"
	var recent, found string
	switch {
	case !c.DeliveredAt.IsZero():
		recent, found = fmt.Sprintf(minute, col(c.DeliveredAt)), "true"
	case c.NextAttemptAt.NotNull && !c.UpdatedAt.IsZero():
		// The index has when they were due; what was due long before it was delivered is missed.
		recent, found = col(c.NextAttemptAt)+" > now() - interval '10 min'", fmt.Sprintf(minute, col(c.UpdatedAt))
	default:
		return nil
	}
	some := fmt.Sprintf("SELECT t.* FROM %s AS t WHERE %s LIMIT %d", t.is.Table, both(t.is.Delivered, recent), countLimit)
	p, err := explain(ctx, tx, some, nil)
	if err != nil || !p.finds() {
		return err
	}
	var n, looked int64
	if err := tx.QueryRow(ctx, fmt.Sprintf("SELECT count(*) FILTER (WHERE %s), count(*) FROM (%s) AS t", found, some), onTheFly).Scan(&n, &looked); err != nil {
		return err
	}
	o.Delivered = &Count{N: n, AtLeast: looked >= countLimit, Estimate: c.DeliveredAt.IsZero()}
	return nil
}
