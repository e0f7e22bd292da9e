package pgstore

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/layouts"
)

// rowQuerier is a pool or a transaction.
type rowQuerier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// countStrays counts rows that no state accounts for: nobody claims, settles or purges them.
func (s *statements) countStrays(ctx context.Context, db rowQuerier) (timeless, unknown int64, err error) {
	if err := db.QueryRow(ctx, s.timeless.sql, append([]any{onTheFly}, s.timeless.with()...)...).Scan(&timeless); err != nil {
		return 0, 0, err
	}
	unknown, err = s.unknown.countIfCheap(ctx, db, onTheFly)
	return timeless, unknown, err
}

// countIfCheap is what a statement without parameters of its own counts, or outbox.NotCounted where that would read the whole of a large table.
func (s *statement) countIfCheap(ctx context.Context, db rowQuerier, options ...any) (n int64, err error) {
	if s == nil {
		return 0, nil
	}
	args := s.with(options...)
	var plan []byte
	if err := db.QueryRow(ctx, "EXPLAIN (FORMAT JSON) "+s.sql, args...).Scan(&plan); err != nil {
		return 0, err
	}
	var plans []struct {
		Plan struct {
			TotalCost float64 `json:"Total Cost"`
		}
	}
	if err := json.Unmarshal(plan, &plans); err != nil {
		return 0, fmt.Errorf("read a plan: %w", err)
	}
	if len(plans) != 1 || plans[0].Plan.TotalCost > mostCost {
		return outbox.NotCounted, nil
	}
	err = db.QueryRow(ctx, s.sql, args...).Scan(&n)
	return n, err
}

// mostCost is what looking for rows of an unknown status may cost, in the planner's units: a table without an index
// for them can have some hundred thousand rows.
const mostCost = 50_000

// timelessCount counts rows that a time decides about and that have none.
func (c *compiler) timelessCount() *statement {
	c.begin(0)
	return c.end("SELECT count(*) FROM (\n  " + c.timeless(outbox.StatsLimit) + "\n) AS timeless")
}

// unknownCount counts rows whose status is none that the layout names, up to limit; nil where there is no status. Shipped tables have an
// index with the same condition, which is nearly always empty.
func (c *compiler) unknownCount(limit int) *statement {
	if c.l.Done != layouts.DoneStatus {
		return nil
	}
	c.begin(0)
	return c.end(fmt.Sprintf("SELECT count(*) FROM (SELECT FROM %s AS t WHERE %s AND %s LIMIT %d) AS unknown",
		c.table(), c.unknown(t), c.mine(), limit))
}

// unknown is true for rows whose status is none that the layout names, NULL included.
func (c *compiler) unknown(name func(layouts.Column) string) string {
	states := c.l.States.All()
	known := make([]string, len(states))
	for i, state := range states {
		known[i] = literal(state)
	}
	return fmt.Sprintf("(%s IN (%s)) IS NOT TRUE", name(c.l.Columns.Status), strings.Join(known, ", "))
}
