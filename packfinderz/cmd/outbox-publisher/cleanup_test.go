package main

import (
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/outboxtest/testdb"
)

// Published rows past their retention go, and nothing else, however old. Dead letters have a retention of their own,
// and none unless it is set.
func TestCleanup(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	// row writes a row of last year, published so long ago, or waiting.
	row := func(published any) uuid.UUID {
		id := uuid.New()
		testdb.Exec(t, b.pool, `INSERT INTO outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json, created_at, published_at)
			VALUES ($1, 'ad_paused', 'ad', gen_random_uuid(), '{}', now() - interval '1 year', now() - $2::text::interval)`, id, published)
		return id
	}
	// dead writes one that has been dead for so long.
	dead := func(age string) uuid.UUID {
		id := row(nil)
		testdb.Exec(t, b.pool, `INSERT INTO outbox_dlq (event_id, event_type, aggregate_type, aggregate_id, payload_json, error_reason,
				failed_at, created_at, attempt_count)
			SELECT id, event_type, aggregate_type, aggregate_id, payload_json, 'rejected', now() - $2::text::interval, created_at, 1
			FROM outbox_events WHERE id = $1`, id, age)
		return id
	}
	row("31 days") // the only one to go
	recent := row("29 days")
	row(nil)
	old, young := dead("91 days"), dead("89 days")
	if err := b.run(t.Context(), "cleanup"); err != nil {
		t.Fatal(err)
	}
	if n := b.number(`SELECT count(*) FROM outbox_events WHERE id = $1`, recent); n != 1 {
		t.Error("a row within its retention is gone")
	}
	if events, letters := b.number(`SELECT count(*) FROM outbox_events`), b.number(`SELECT count(*) FROM outbox_dlq`); events != 4 || letters != 2 {
		t.Errorf("%d events and %d dead letters are left, want 4 and 2", events, letters)
	}
	b.env["PACKFINDERZ_OUTBOX_DLQ_RETENTION"] = "2160h" // 90 days
	if err := b.run(t.Context(), "cleanup"); err != nil {
		t.Fatal(err)
	}
	// The event goes with its dead letter: left behind, it would be published.
	if n := b.number(`SELECT count(*) FROM outbox_events WHERE id = $1`, old) + b.number(`SELECT count(*) FROM outbox_dlq WHERE event_id = $1`, old); n != 0 {
		t.Error("a dead letter past its retention is still there")
	}
	if n := b.number(`SELECT count(*) FROM outbox_dlq WHERE event_id = $1`, young); n != 1 {
		t.Error("a dead letter within its retention is gone")
	}
	lines := b.log.all(t, "cleaned up")
	if len(lines) != 2 || lines[0]["deleted"] != 1.0 || lines[1]["deleted"] != 1.0 {
		t.Errorf("the log says %v", lines)
	}
}
