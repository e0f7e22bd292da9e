package pgstream_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/pgstream"
)

// TestSequenceSetBackUnderAnOlderRelay has a subscription whose relay is of a version that passes events over and notices
// nothing. A relay of another subscription finds that out, and the repair is for both.
func TestSequenceSetBackUnderAnOlderRelay(t *testing.T) {
	t.Parallel()
	h, store := settled(t, pgtest.URL(t))
	store.Close()
	if err := (pgstream.Stream{}).CreateSubscription(t.Context(), h.pool, pgstream.Subscription{Name: "older"}, pgstream.StartNow); err != nil {
		t.Fatal(err)
	}
	want := h.resetSequence(t)
	rows, err := h.pool.Query(t.Context(), `
		SELECT id FROM outbox_stream
		WHERE id = ANY ($1) AND seq <= (SELECT q1 FROM outbox_shards WHERE subscription = 'default')`, want)
	if err != nil {
		t.Fatal(err)
	}
	passed, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil || len(passed) == 0 || len(passed) == len(want) {
		t.Fatalf("%d of %d events have numbers that were passed: %v", len(passed), len(want), err)
	}
	// A window of the older relay is over: it had the events above q1, and none of the others.
	pgtest.Exec(t, h.pool, `UPDATE outbox_shards SET s1 = pg_current_snapshot() WHERE subscription = 'older'`)
	h.refused(t, "", "set back")
	h.repair(t, pgstream.RepairOptions{})
	if got := drain(t, h.open(t, pgstream.Config{Subscription: "older"})); !sameSet(got, passed) {
		t.Errorf("after the repair %d events arrive that were passed over, want %d", len(got), len(passed))
	}
	if got := drain(t, h.open(t, pgstream.Config{})); !sameSet(got, want) {
		t.Errorf("after the repair %d events arrive where none was passed over, want %d", len(got), len(want))
	}
}
