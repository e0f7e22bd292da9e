package shipped_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/layouts/modkit"
	"github.com/packfinderz/outbox/layouts/packfinderz"
	"github.com/packfinderz/outbox/outboxpgx"
	"github.com/packfinderz/outbox/pgstore"
)

func emit(t *testing.T, pool *pgxpool.Pool, layout layouts.Layout, event outbox.Event, n int) {
	t.Helper()
	emitter, err := outboxpgx.New(layout, outbox.EmitConfig{})
	if err != nil {
		t.Fatal(err)
	}
	events := make([]outbox.Event, n)
	for i := range events {
		events[i] = event
	}
	err = emitter.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := emitter.EmitMany(t.Context(), tx, events)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestModKitCalls claims, acks and nacks, one message at a time.
func TestModKitCalls(t *testing.T) {
	t.Parallel()
	pool := migrated(t, "modkit")
	emit(t, pool, modkit.Layout(), outbox.Event{Namespace: "mini-chat", Topic: "usage", Payload: []byte(`{}`)}, 4)
	emit(t, pool, modkit.Layout(), outbox.Event{Namespace: "other", Topic: "usage", Payload: []byte(`{}`)}, 1)
	module, err := modkit.NewModule(pool, modkit.Config{Namespace: "mini-chat", MaxAttempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	claimed, err := module.ClaimBatch(t.Context(), modkit.ClaimCfg{BatchSize: 10})
	if err != nil || len(claimed) != 4 {
		t.Fatalf("claimed %d: %v", len(claimed), err)
	}
	if err := module.Ack(t.Context(), claimed[0]); err != nil {
		t.Fatal(err)
	}
	if err := module.Ack(t.Context(), claimed[0]); !errors.Is(err, outbox.ErrLeaseLost) {
		t.Errorf("a second ack: %v", err)
	}
	if err := module.Nack(t.Context(), claimed[1], errors.New("the callback said no")); err != nil {
		t.Fatal(err)
	}
	// Another worker has it by now.
	pgtest.Exec(t, pool, `UPDATE modkit_outbox_events SET locked_by = gen_random_uuid() WHERE id = $1`, claimed[2].ID)
	if err := module.Ack(t.Context(), claimed[2]); !errors.Is(err, outbox.ErrLeaseLost) {
		t.Errorf("an ack of a row that is somebody else's: %v", err)
	}
	// Something updated the row, so it moved in the table; this claim still holds it.
	pgtest.Exec(t, pool, `UPDATE modkit_outbox_events SET updated_at = now() WHERE id = $1`, claimed[3].ID)
	if err := module.Ack(t.Context(), claimed[3]); err != nil {
		t.Errorf("an ack of a row that moved: %v", err)
	}
	if err := module.Ack(t.Context(), modkit.ClaimedMessage{}); err == nil {
		t.Error("a message that nobody claimed was acked")
	}
	want := map[uuid.UUID]string{
		claimed[0].ID: "delivered", claimed[1].ID: "dead", claimed[2].ID: "processing", claimed[3].ID: "delivered",
	}
	for id, status := range want {
		var got string
		if err := pool.QueryRow(t.Context(), `SELECT status FROM modkit_outbox_events WHERE id = $1`, id).Scan(&got); err != nil || got != status {
			t.Errorf("event %s is %q (%v), want %q", id, got, err, status)
		}
	}
}

// TestPackFinderzCalls fetches, marks and commits.
func TestPackFinderzCalls(t *testing.T) {
	t.Parallel()
	pool := migrated(t, "packfinderz")
	event := outbox.Event{Type: "order_created", AggregateType: "vendor_order", AggregateID: uuid.NewString(), Payload: []byte(`{}`)}
	emit(t, pool, packfinderz.Layout(), event, 5)
	store, err := packfinderz.NewStore(pool, packfinderz.Layout(), pgstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	fetched, err := store.FetchUnpublishedForPublish(t.Context(), 4)
	if err != nil || len(fetched.Events()) != 4 {
		t.Fatalf("fetched %d: %v", len(fetched.Events()), err)
	}
	// The rows are locked: another publisher gets the rest.
	other, err := store.FetchUnpublishedForPublish(t.Context(), 10)
	if err != nil || len(other.Events()) != 1 {
		t.Fatalf("a second publisher fetched %d: %v", len(other.Events()), err)
	}
	other.Rollback()
	events := fetched.Events()
	for _, err := range []error{
		fetched.MarkPublished(events[0].ID),
		fetched.MarkFailed(events[1].ID, errors.New("timeout")),
		fetched.MarkFailed(events[2].ID, outbox.Rejected(errors.New("too large"))),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := fetched.MarkPublished(uuid.New()); err == nil {
		t.Error("a row that was not fetched was marked")
	}
	if err := fetched.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	fetched.Rollback() // does nothing any more
	var ok bool
	err = pool.QueryRow(t.Context(), `
		SELECT (SELECT published_at IS NOT NULL AND attempt_count = 0 FROM outbox_events WHERE id = $1)
		AND (SELECT published_at IS NULL AND attempt_count = 1 AND last_error = 'timeout' FROM outbox_events WHERE id = $2)
		AND (SELECT published_at IS NULL AND attempt_count = 1 FROM outbox_events WHERE id = $3)
		AND (SELECT error_reason = 'rejected' FROM outbox_dlq WHERE event_id = $3)
		AND (SELECT published_at IS NULL AND attempt_count = 0 FROM outbox_events WHERE id = $4)`,
		events[0].ID, events[1].ID, events[2].ID, events[3].ID).Scan(&ok)
	if err != nil || !ok {
		t.Errorf("the rows are not as marked (%v)", err)
	}
	next, err := store.FetchUnpublishedForPublish(t.Context(), 10)
	if err != nil || len(next.Events()) != 3 {
		t.Errorf("fetched %d after that: %v", len(next.Events()), err)
	}
	next.Rollback()
}
