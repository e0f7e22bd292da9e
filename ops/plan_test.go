package ops_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/ops"
	"github.com/packfinderz/outbox/outboxtest/await"
)

const (
	planDelivered = 200_000 // more than is simply counted
	planWaiting   = 2_000
	planDead      = 2_000
)

// crowd fills the outbox with many delivered events, some that wait and some that are dead,
// with statistics.
func (h *harness) crowd() {
	h.Helper()
	// By the session whose reads are counted: another one's would be reported in the middle of it.
	exec := func(sql string, args ...any) {
		h.Helper()
		pgtest.Exec(h.T, h.single, sql, args...)
	}
	const id = `(lpad(to_hex(1767225600000 + i), 12, '0') || '70008' || lpad(to_hex(i), 15, '0'))::uuid`
	switch h.layout {
	case "modkit":
		exec(`INSERT INTO modkit_outbox_events (id, namespace, topic, payload, status, next_attempt_at, created_at, updated_at)
			SELECT `+id+`, 'shop', 'orders', '{}', CASE WHEN i <= $1 THEN 'delivered' WHEN i % 2 = 0 THEN 'dead' ELSE 'pending' END, at, at, at
			FROM generate_series(1, $1 + 2 * $2::int) AS i, LATERAL (SELECT timestamptz '2026-01-01' + i * interval '1 ms' AS at) AS t`, planDelivered, planDead)
	case "doorito":
		exec(`INSERT INTO outbox_event (id, event_type, aggregate_type, aggregate_id, idempotency_key, status, next_attempt_at, delivered_at, created_at)
			SELECT `+id+`, 'file.stored', 'UploadFile', i::text, i::text, CASE WHEN i <= $1 THEN 'delivered' WHEN i % 2 = 0 THEN 'failed' ELSE 'pending' END,
			  CASE WHEN i > $1 AND i % 2 = 1 THEN at END, CASE WHEN i <= $1 THEN at END, at
			FROM generate_series(1, $1 + 2 * $2::int) AS i, LATERAL (SELECT timestamptz '2026-01-01' + i * interval '1 ms' AS at) AS t`, planDelivered, planDead)
	case "packfinderz":
		exec(`INSERT INTO outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json, created_at, published_at)
			SELECT `+id+`, 'order_created', 'vendor_order', `+id+`, '{}', at, CASE WHEN i <= $1 THEN at END
			FROM generate_series(1, $1 + 2 * $2::int) AS i, LATERAL (SELECT timestamptz '2026-01-01' + i * interval '1 ms' AS at) AS t`, planDelivered, planDead)
		exec(`INSERT INTO outbox_dlq (event_id, event_type, aggregate_type, aggregate_id, payload_json, error_reason, failed_at, created_at, attempt_count)
			SELECT id, event_type, aggregate_type, aggregate_id, '{}', 'terminal', created_at, created_at, 1 FROM
			(SELECT *, row_number() OVER (ORDER BY id) AS i FROM outbox_events WHERE published_at IS NULL) AS e WHERE i % 2 = 0`)
	case "standard":
		const insert = `INSERT INTO outbox_stream (shard, id, topic, type, key, payload)
			SELECT outbox_shard('k' || i % 100, NULL), ` + id + `, 'orders', 'made', 'k' || i % 100, '{}' FROM generate_series($1::int, $2::int) AS i`
		exec(insert, 1, planDelivered)
		// Other tests on the server hold the snapshot's xmin back; here all has ended.
		exec(`UPDATE outbox_shards SET s1 = (m || ':' || m || ':')::pg_snapshot, q1 = $1, hi = $1
			FROM (SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS m) AS now`, planDelivered)
		exec(`INSERT INTO outbox_parked (subscription, shard, seq, state, gates, attempts, id, topic, type, key, payload, created_at)
			SELECT 'default', shard, seq, 'dead', false, 10, id, topic, type, key, payload, created_at FROM outbox_stream WHERE seq <= $1`, planDead)
		exec(insert, planDelivered+1, planDelivered+planWaiting)
	}
	exec(`VACUUM ANALYZE`)
}

// TestPlans counts what PostgreSQL reads for the first page of every list that an index
// serves, and for the overview: with a long past it is a fraction of the table.
func TestPlans(t *testing.T) {
	t.Parallel()
	everywhere(t, func(h *harness) {
		h.crowd()
		newest := h.list(ops.Filter{})
		some := newest[len(newest)-1]
		filters := map[string]ops.Filter{"all": {}, "time": {Since: some.CreatedAt.Add(-hour), Until: some.CreatedAt.Add(hour)}}
		for _, state := range []ops.State{ops.StateDue, ops.StateDead, ops.StateDelivered} {
			filters[string(state)] = ops.Filter{State: state}
		}
		if h.layout != "standard" { // the log is searched around the time of an id
			filters["id"] = ops.Filter{IDs: []uuid.UUID{some.ID}}
		}
		if h.layout == "packfinderz" {
			filters["aggregate"] = ops.Filter{AggregateType: some.AggregateType, AggregateID: some.AggregateID}
		}
		for name, filter := range filters {
			rows := h.reads(func() {
				listing, err := h.outbox.List(h.Context(), filter, ops.Page{})
				h.must(err)
				if len(listing.Events) == 0 || listing.Unindexed {
					h.Errorf("%s: %d events, unindexed: %v", name, len(listing.Events), listing.Unindexed)
				}
			})
			most := int64(5_000)
			if name == string(ops.StateDead) && h.layout == "packfinderz" {
				// They are sorted, so that each letter is read, with its event. From PostgreSQL 18 on the planner reads them
				// twice more to know the states of the events.
				most = 4*planDead + 500
			}
			if rows > most {
				h.Errorf("%s: %d rows were read for a page", name, rows)
			}
		}
		rows := h.reads(func() {
			_, err := h.outbox.Overview(h.Context())
			h.must(err)
		})
		if rows > planDelivered/2 {
			h.Errorf("the overview reads %d rows", rows)
		}
	})
}

// reads is how many rows the tables of the database were asked for, by index or by scan.
func (h *harness) reads(work func()) int64 {
	h.Helper()
	count := func() int64 {
		h.report()
		return h.count(`SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint FROM pg_stat_user_tables WHERE relname LIKE '%outbox%'`)
	}
	before := count()
	work()
	return count() - before
}

// report makes the session that read report what it has read.
func (h *harness) report() {
	h.Helper()
	if h.count(`SELECT current_setting('server_version_num')::bigint`) >= 150000 {
		_, err := h.single.Exec(h.Context(), `SELECT pg_stat_force_next_flush()`)
		h.must(err)
		return
	}
	// Up to PostgreSQL 14 a session reports at its end, to a collector that takes reports in their order. One that has
	// read a mark last has reported all when the mark is seen.
	const marked = `SELECT coalesce(sum(seq_tup_read), 0)::bigint FROM pg_stat_user_tables WHERE relname = 'mark'`
	before := h.count(marked)
	pgtest.Exec(h.T, h.single, `CREATE TABLE IF NOT EXISTS mark AS SELECT 1 AS one`)
	pgtest.Exec(h.T, h.single, `SELECT count(*) FROM mark`)
	h.single.Reset()
	await.Until(h.T, "the session's report", func() bool { return h.count(marked) > before })
}

// TestUnindexed finds events that no index leads to in as many pages as it takes, each of
// which says how far it came.
func TestUnindexed(t *testing.T) {
	t.Parallel()
	for _, layout := range []string{"modkit", "standard"} {
		t.Run(layout, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, layout)
			rare := h.emit(1, func(_ int, event *outbox.Event) { event.Topic = "rare" })
			h.deliver()
			h.exec(map[string]string{
				"modkit":   `UPDATE modkit_outbox_events SET id = '018bcfe5-6800-7000-8000-000000000000', created_at = '2025-01-01', next_attempt_at = '2025-01-01'`,
				"standard": `UPDATE outbox_stream SET created_at = '2025-01-01'`,
			}[layout])
			h.crowd()
			pages, found := 0, 0
			for page := (ops.Page{}); ; pages++ {
				listing, err := h.outbox.List(h.Context(), ops.Filter{Topic: "rare"}, page)
				h.must(err)
				found += len(listing.Events)
				if page.Cursor = listing.Next; page.Cursor == "" {
					break
				}
				if !listing.Unindexed || listing.SearchedTo.IsZero() || listing.Searched == 0 {
					h.Fatalf("a page without events says nothing: %+v", listing)
				}
			}
			if found != 1 || pages < 3 {
				h.Errorf("%d events in %d pages; %v is rare", found, pages+1, rare)
			}
		})
	}
}
