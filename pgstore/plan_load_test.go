package pgstore_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/pgstore"
)

// load writes delivered rows, dead ones that are the oldest of all, and waiting ones, the
// first fifth of which came from one transaction and has one time.
func (p *planner) load(done, dead, pending int) {
	p.t.Helper()
	p.insert("dead", dead, "now() - interval '10 days' + i * interval '1 ms'")
	p.insert("done", done, "now() - interval '5 days' + i * interval '1 ms'")
	p.insert("pending", pending, fmt.Sprintf("now() - interval '1 day' + greatest(i - %d, 0) * interval '1 ms'", p.next+pending/5))
}

func (p *planner) insert(kind string, rows int, at string) {
	p.t.Helper()
	first := p.next
	p.next += rows
	is := func(then, otherwise string, kinds ...string) string {
		if slices.Contains(kinds, kind) {
			return then
		}
		return otherwise
	}
	var columns, values string
	switch p.c.layout {
	case "modkit":
		columns = "id, namespace, topic, payload, status, attempts, next_attempt_at, created_at, updated_at"
		values = "'mini-chat', 'usage', '{\"amount\": 12}', " + is("'delivered', 1", is("'dead', 10", "'pending', 0", "dead"), "done") + ", at, at, at"
	case "doorito":
		columns = "id, aggregate_type, aggregate_id, event_type, payload, idempotency_key, status, attempts, max_attempts, next_attempt_at, delivered_at, created_at, updated_at"
		values = "'UploadFile', '42', 'file.stored', '{\"amount\": 12}', i::text, " +
			is("'delivered', 0, 5, NULL, at", is("'failed', 5, 5, NULL, NULL", "'pending', 0, 5, at, NULL", "dead"), "done") + ", at, at"
	case "packfinderz":
		columns = "id, event_type, aggregate_type, aggregate_id, payload_json, created_at, published_at, attempt_count, last_error"
		values = "'order_created', 'vendor_order', id, '{\"amount\": 12}', at, " + is("at, 0, NULL", is("NULL, 10, 'no'", "NULL, 0, NULL", "dead"), "done")
	default:
		columns = "no, kind, part, body, made, tries, due, sent"
		values = "'made', 'k', '{\"amount\": 12}', at, " + is("1, NULL, at", is("3, NULL, NULL", "0, at, NULL", "dead"), "done")
	}
	pgtest.Exec(p.t, p.h.pool, fmt.Sprintf(`INSERT INTO %s (%s) SELECT id, %s FROM (
		SELECT i, lpad(to_hex(i), 32, '0')::uuid AS id, %s AS at FROM generate_series(%d, %d) AS i) AS made`,
		p.h.table(), columns, values, at, first, p.next-1))
	if kind != "dead" || p.h.layout.DeadLetter == nil {
		return
	}
	letters := "id, event_id, event_type, aggregate_type, aggregate_id, payload_json, error_reason, created_at, attempt_count) " +
		"SELECT id, id, event_type, aggregate_type, aggregate_id, payload_json, 'max_attempts', created_at, attempt_count"
	if p.c.layout != "packfinderz" {
		letters = "id, event, body, reason, failed) SELECT no, no, body, 'max_attempts', made"
	}
	pgtest.Exec(p.t, p.h.pool, fmt.Sprintf("INSERT INTO %s (%s FROM %s", p.h.letters(), letters, p.h.table()))
}

// stale leaves the planner with what it learned before there was a backlog.
func (p *planner) stale() {
	p.t.Helper()
	l := &p.h.layout
	where := l.Columns.CreatedAt.Name + " > now() - interval '2 days'"
	pgtest.Exec(p.t, p.h.pool, fmt.Sprintf("DELETE FROM %s WHERE %s", p.h.table(), where))
	pgtest.Exec(p.t, p.h.pool, "VACUUM ANALYZE")
	p.insert("pending", planPending, fmt.Sprintf("now() - interval '1 day' + greatest(i - %d, 0) * interval '1 ms'", p.next+planPending/5))
}

// middle is a time in the middle of the backlog.
func (p *planner) middle() (at time.Time) {
	p.t.Helper()
	column := p.h.layout.Columns.CreatedAt
	if next := p.h.layout.Columns.NextAttemptAt; !next.IsZero() {
		column = next
	}
	row := p.h.pool.QueryRow(p.t.Context(), fmt.Sprintf("SELECT %s FROM %s WHERE %s = $1", column.Name, p.h.table(), p.h.layout.Columns.ID.Name),
		pgtype.UUID{Bytes: planID(p.next - planPending/2), Valid: true})
	if err := row.Scan(&at); err != nil {
		p.t.Fatal(err)
	}
	return at
}

func planID(i int) (id [16]byte) {
	for place := 15; i > 0; place-- {
		id[place] = byte(i)
		i >>= 8
	}
	return id
}

// held claims a batch. Under row locks, where a claim marks nothing, it only looks.
func (p *planner) held() []pgstore.PlanHold {
	p.t.Helper()
	if p.h.layout.Hold != layouts.HoldRowLock {
		batch, err := p.store.Claim(p.t.Context(), outbox.ClaimRequest{Limit: planBatch})
		if err == nil {
			err = batch.Renew(p.t.Context()) // it marks what is only locked
		}
		if err != nil {
			p.t.Fatal(err)
		}
		return pgstore.PlanHolds(batch)
	}
	rows, err := p.h.pool.Query(p.t.Context(), fmt.Sprintf("SELECT id, ctid FROM %s WHERE id >= $1 ORDER BY id LIMIT $2", p.h.table()),
		pgtype.UUID{Bytes: planID(p.next - planPending), Valid: true}, planBatch)
	if err != nil {
		p.t.Fatal(err)
	}
	held, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (h pgstore.PlanHold, err error) {
		return h, row.Scan(&h.ID, &h.TID)
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return held
}
