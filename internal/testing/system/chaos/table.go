//go:build unix

package chaos

// The table, as its layout describes it: what is undelivered, what is held, and how every row must end.

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/outboxpgx"
)

// table asks questions about a layout's rows.
type table struct {
	pool   *pgxpool.Pool
	layout layouts.Layout
}

func (q *table) load(_ context.Context, ledger *ledger) (load, int, error) {
	emitter, err := outboxpgx.New(q.layout, outbox.EmitConfig{})
	return &tableLoad{ledger: ledger, layout: q.layout, pool: q.pool, emitter: emitter}, tableProducers, err
}

func (q *table) inbox(_ *testing.T, folder string) inbox { return newFiles(folder) }

func (q *table) undone() int { return 0 }

func (q *table) name() string { return pgx.Identifier{q.layout.Table}.Sanitize() }

func column(c layouts.Column) string { return pgx.Identifier{c.Name}.Sanitize() }

// delivered is true for rows that are done.
func (q *table) delivered() string {
	if q.layout.Done == layouts.DoneStatus {
		return fmt.Sprintf("%s = '%s'", column(q.layout.Columns.Status), q.layout.States.Delivered)
	}
	return column(q.layout.Columns.DeliveredAt) + " IS NOT NULL"
}

func (q *table) held(ctx context.Context) (int, error) { return q.count(ctx, q.claimed()) }

// claimed is true for rows that a relay has claimed. A row lock leaves nothing in the row.
func (q *table) claimed() string {
	columns := &q.layout.Columns
	switch q.layout.Hold {
	case layouts.HoldLease:
		held := fmt.Sprintf("(%s IS NOT NULL OR %s IS NOT NULL)", column(columns.LockedBy), column(columns.LockedUntil))
		if q.layout.States != nil {
			held += fmt.Sprintf(" OR %s = '%s'", column(columns.Status), q.layout.States.Processing)
		}
		return held
	case layouts.HoldDefer:
		return fmt.Sprintf("NOT (%s) AND %s > now()", q.delivered(), column(columns.NextAttemptAt))
	default:
		return "false"
	}
}

// count counts rows.
func (q *table) count(ctx context.Context, where string) (n int, err error) {
	err = q.pool.QueryRow(ctx, fmt.Sprintf("SELECT count(*) FROM %s WHERE %s", q.name(), where)).Scan(&n)
	return n, err
}

func (q *table) undelivered(ctx context.Context) (int, error) {
	return q.count(ctx, "NOT ("+q.delivered()+")")
}

// problems looks at the rows. Where every event was tried exactly once its attempts must say so.
func (q *table) problems(ctx context.Context, committed map[uuid.UUID]time.Time, tried bool) (problems []string, err error) {
	columns := &q.layout.Columns
	attempts := column(columns.Attempts) + " <> 0"
	if q.layout.Count == layouts.CountOnClaim {
		attempts = column(columns.Attempts) + " < 1"
		if tried {
			attempts = column(columns.Attempts) + " <> 1"
		}
	}
	checks := []struct{ what, where string }{
		{"are not delivered", "NOT (" + q.delivered() + ")"},
		{"are still held", q.claimed()},
		{"have counted attempts that were not made, or not counted one that was", attempts},
	}
	if !columns.LastError.IsZero() {
		checks = append(checks, struct{ what, where string }{
			"have an error that never happened", fmt.Sprintf("coalesce(%s, '') <> ''", column(columns.LastError)),
		})
	}
	for _, check := range checks {
		n, err := q.count(ctx, check.where)
		if err != nil {
			return nil, err
		}
		if n > 0 {
			problems = append(problems, fmt.Sprintf("%d rows %s", n, check.what))
		}
	}
	if q.layout.DeadLetter != nil {
		var letters int
		sql := "SELECT count(*) FROM " + pgx.Identifier{q.layout.DeadLetter.Table}.Sanitize()
		if err := q.pool.QueryRow(ctx, sql).Scan(&letters); err != nil {
			return nil, err
		}
		if letters > 0 {
			problems = append(problems, fmt.Sprintf("%d dead letters, and no event was refused", letters))
		}
	}
	missing, surplus, err := compare(ctx, q.pool, fmt.Sprintf("SELECT %s FROM %s", column(columns.ID), q.name()), committed)
	if missing+surplus > 0 {
		problems = append(problems, fmt.Sprintf("the table lacks %d committed events and has %d others", missing, surplus))
	}
	return problems, err
}

// compare holds the ids that a query finds against what the producers committed: the record itself must be right.
func compare(ctx context.Context, pool *pgxpool.Pool, sql string, committed map[uuid.UUID]time.Time) (missing, surplus int, err error) {
	rows, err := pool.Query(ctx, sql)
	if err != nil {
		return 0, 0, err
	}
	found := 0
	var id uuid.UUID
	_, err = pgx.ForEachRow(rows, []any{(*[16]byte)(&id)}, func() error {
		if _, ok := committed[id]; ok {
			found++
		} else {
			surplus++
		}
		return nil
	})
	return len(committed) - found, surplus, err
}
