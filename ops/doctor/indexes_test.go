package doctor_test

import (
	"strings"
	"testing"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/ops/doctor"
	"github.com/packfinderz/outbox/pgstream"
)

// TestMissingIndexes drops each index that is needed, and makes it again as the finding says.
func TestMissingIndexes(t *testing.T) {
	t.Parallel()
	for layout, cases := range map[string][]struct {
		drop     string
		severity doctor.Severity
		words    string
	}{
		"modkit": {
			{`DROP INDEX idx_modkit_outbox_events_claim`, doctor.Warning, "the claim, which takes the oldest"},
			{`DROP INDEX idx_modkit_outbox_events_locked_until`, doctor.Warning, "whose lease is over"},
			{`DROP INDEX idx_modkit_outbox_events_dedupe; CREATE INDEX plain ON modkit_outbox_events (namespace, topic, dedupe_key)`, doctor.Problem,
				"a dedupe key is not unique"},
			{`ALTER TABLE modkit_outbox_events DROP CONSTRAINT modkit_outbox_events_pkey`, doctor.Problem, "an event's id is not unique"},
		},
		"doorito": {
			// The contract's own index gives no order among equal due times.
			{`DROP INDEX idx_outbox_event_claim`, doctor.Warning, "the claim, which takes the oldest"},
			{`ALTER TABLE outbox_event DROP CONSTRAINT unique_event_type_idempotency_key`, doctor.Problem, "a dedupe key is not unique"},
		},
		"packfinderz": {
			{`DROP INDEX idx_outbox_events_claim`, doctor.Warning, "the claim, which takes the oldest"},
			{`DROP INDEX idx_outbox_dlq_event_id`, doctor.Warning, "that have a dead letter"},
		},
	} {
		t.Run(layout, func(t *testing.T) {
			t.Parallel()
			p := newTable(t, pgtest.Pool(t), layout)
			for _, c := range cases {
				pgtest.Exec(t, p.pool, c.drop)
				found := p.finds(t, "indexes", c.severity, c.words)
				pgtest.Exec(t, p.pool, found.Do)
				p.isWell(t, "indexes")
			}
		})
	}
}

func TestMissingIndexesOfStream(t *testing.T) {
	t.Parallel()
	p := newStream(t, pgtest.Pool(t), pgstream.Shape{Slots: 3})
	for _, c := range []struct{ drop, words string }{
		{`DROP INDEX outbox_stream_shard_seq`, "index outbox_stream_shard_seq is missing"},
		{`DROP INDEX outbox_parked_due`, "index outbox_parked_due is missing"},
		{`DROP INDEX outbox_deliveries_settled_at`, "index outbox_deliveries_settled_at is missing"},
		{`DROP INDEX outbox_dedupe_key`, "index outbox_dedupe_key is missing"},
		// One that finds a dedupe key does not keep it from being emitted twice.
		{`DROP INDEX outbox_dedupe_key; CREATE INDEX outbox_dedupe_key ON outbox_dedupe (namespace, topic, dedupe_key)`, "index outbox_dedupe_key is"},
	} {
		pgtest.Exec(t, p.pool, c.drop)
		found := p.finds(t, "layout", doctor.Problem, c.words)
		_, statement, _ := strings.Cut(found.Do, ": ")
		for _, one := range strings.SplitAfter(statement, "; ") { // CONCURRENTLY goes alone
			pgtest.Exec(t, p.pool, one)
		}
		p.isWell(t, "layout")
	}
}

// TestInvalidUniqueIndex builds a unique index on duplicates, which fails and leaves it.
func TestInvalidUniqueIndex(t *testing.T) {
	t.Parallel()
	p := newTable(t, pgtest.Pool(t), "modkit")
	for range 2 {
		pgtest.Exec(t, p.pool, insertModkit)
	}
	if _, err := p.pool.Exec(t.Context(), `CREATE UNIQUE INDEX CONCURRENTLY twice ON modkit_outbox_events (topic)`); err == nil {
		t.Fatal("duplicates are unique")
	}
	p.finds(t, "indexes", doctor.Problem, "unique index twice is invalid", "DROP INDEX CONCURRENTLY twice;")
}

// TestInterruptedIndex cancels a CREATE INDEX CONCURRENTLY that waits for a transaction.
func TestInterruptedIndex(t *testing.T) {
	t.Parallel()
	p := newTable(t, pgtest.Pool(t), "packfinderz")
	release := hold(t, p.pool, `LOCK TABLE outbox_events IN ROW EXCLUSIVE MODE`)
	failed := make(chan error, 1)
	go func() {
		_, err := p.pool.Exec(t.Context(), `CREATE INDEX CONCURRENTLY halfway ON outbox_events (attempt_count)`)
		failed <- err
	}()
	awaitTrue(t, p.pool, `SELECT to_regclass('halfway') IS NOT NULL`)
	p.finds(t, "indexes", doctor.Note, "index halfway is being built")
	pgtest.Exec(t, p.pool, `SELECT pg_cancel_backend(pid) FROM pg_stat_progress_create_index WHERE datname = current_database()`)
	if err := <-failed; err == nil {
		t.Fatal("the index was built")
	}
	p.finds(t, "indexes", doctor.Warning, "index halfway is invalid", "REINDEX INDEX CONCURRENTLY halfway;")
	release()
	pgtest.Exec(t, p.pool, `REINDEX INDEX CONCURRENTLY halfway`)
	p.isWell(t, "indexes")
}
