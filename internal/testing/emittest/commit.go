package emittest

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
)

func testCommitAndRollback(_ *testing.T, b *bed) {
	e := b.emitter(outbox.EmitConfig{})

	tx := b.begin(e)
	if _, err := tx.Emit(b.Context(), b.event()); err != nil {
		b.Fatal(err)
	}
	if _, err := tx.EmitMany(b.Context(), []outbox.Event{b.event(), b.event()}); err != nil {
		b.Fatal(err)
	}
	b.must(tx.Rollback(b.Context()))
	b.wantCount(0)

	tx = b.begin(e)
	done, err := tx.Emit(b.Context(), b.event())
	b.must(err)
	b.wantCount(0) // not before the caller commits
	b.must(tx.Commit(b.Context()))
	b.wantCount(1)
	if done.AlreadyEnqueued || done.ID.Version() != 7 {
		b.Fatalf("got %+v, want a new UUIDv7", done)
	}
	var id uuid.UUID
	b.must(b.pool.QueryRow(b.Context(), `SELECT id FROM `+b.table()).Scan(&id))
	if id != done.ID {
		b.Fatalf("the row has id %s, Emit said %s", id, done.ID)
	}
}

// testNewRow holds a fresh row against the contract, column by column.
func testNewRow(_ *testing.T, b *bed) {
	e := b.emitter(outbox.EmitConfig{})
	event := b.event()
	event.ID = uuid.New()
	later := time.Date(2031, 3, 30, 1, 30, 0, 123000, time.UTC)
	tenant := uuid.New()
	var want map[string]any
	switch b.place.name {
	case "packfinderz":
		want = map[string]any{
			"event_type": "order_created", "aggregate_type": "vendor_order", "aggregate_id": event.AggregateID,
			"published_at": nil, "attempt_count": 0.0, "last_error": nil,
		}
	case "doorito":
		event.DedupeKey, event.MaxAttempts, event.NotBefore = "once", 7, later
		want = map[string]any{
			"event_type": "file.stored", "aggregate_type": "UploadFile", "aggregate_id": "42", "idempotency_key": "once",
			"status": "pending", "attempts": 0.0, "max_attempts": 7.0, "delivered_at": nil, "error_message": "",
		}
	case "modkit":
		event.TenantID, event.NotBefore = tenant, later
		event.DedupeKey = tenant.String() + "/1/2"
		want = map[string]any{
			"namespace": "mini-chat", "topic": "usage", "tenant_id": tenant.String(), "dedupe_key": event.DedupeKey,
			"status": "pending", "attempts": 0.0, "locked_by": nil, "locked_until": nil, "last_error": nil,
		}
	case "standard":
		event.Namespace, event.Key, event.AggregateType, event.AggregateID = "shop", "customer-7", "order", "42"
		event.TenantID, event.DedupeKey = tenant, tenant.String()+"/placed/42"
		event.ContentType, event.MaxAttempts, event.NotBefore = "application/json", 7, later
		want = map[string]any{
			"namespace": "shop", "topic": "orders", "type": "order_created", "key": "customer-7", "aggregate_type": "order",
			"aggregate_id": "42", "tenant_id": tenant.String(), "headers": nil, "content_type": "application/json", "max_attempts": 7.0,
		}
	}
	want["id"] = event.ID.String()
	for _, many := range []bool{false, true} {
		tx := b.begin(e)
		var err error
		if many {
			_, err = tx.EmitMany(b.Context(), []outbox.Event{event})
		} else {
			_, err = tx.Emit(b.Context(), event)
		}
		b.must(err)
		b.must(tx.Commit(b.Context()))
		var doc []byte
		var due *time.Time
		b.must(b.pool.QueryRow(b.Context(), `SELECT to_jsonb(t) FROM `+b.table()+` t`).Scan(&doc))
		if b.place.due != "" {
			b.must(b.pool.QueryRow(b.Context(), `SELECT `+b.place.due+` FROM `+b.table()).Scan(&due))
			if due == nil || !due.Equal(later) {
				b.Errorf("%s is %v, want %s", b.place.due, due, later)
			}
		}
		var row map[string]any
		b.must(json.Unmarshal(doc, &row))
		for column, value := range want {
			if got, ok := row[column]; !ok || got != value {
				b.Errorf("many=%v: %s is %v, want %v", many, column, got, value)
			}
		}
		if row["created_at"] == nil {
			b.Errorf("created_at is NULL")
		}
		b.clear()
	}
}

func testMany(_ *testing.T, b *bed) {
	e := b.emitter(outbox.EmitConfig{})
	const n = 2500
	events := make([]outbox.Event, n)
	for i := range events {
		events[i] = b.event()
		events[i].Payload = fmt.Appendf(nil, "{\"n\": %d,\n\"text\": \"quote \\\" backslash \\\\ brace } 'tick' NULL \\u001e\"}", i)
	}
	tx := b.begin(e)
	done, err := tx.EmitMany(b.Context(), events)
	b.must(err)
	b.must(tx.Commit(b.Context()))
	b.wantCount(n)
	for _, i := range []int{0, 1, n / 2, n - 1} {
		if got := b.payload(done[i].ID); string(got) != string(b.stored(events[i].Payload)) {
			b.Errorf("event %d: payload is %s", i, got)
		}
	}
	// Ids are new, and rise in the order given, so that a claim by age and id keeps it.
	for i := range done {
		if done[i].AlreadyEnqueued || done[i].ID.Version() != 7 || i > 0 && done[i].ID.String() <= done[i-1].ID.String() {
			b.Fatalf("event %d: %+v, want a new UUIDv7 after %+v", i, done[i], done[max(i-1, 0)])
		}
	}
	none, err := b.begin(e).EmitMany(b.Context(), nil)
	if err != nil || len(none) != 0 {
		b.Fatalf("no events: got %v, %v", none, err)
	}
}

// testLostCommit is the caller's view of a connection that dies at COMMIT: it cannot
// know whether the event is there, and emits again.
func testLostCommit(_ *testing.T, b *bed) {
	e := b.emitter(outbox.EmitConfig{})
	event := b.event()
	event.ID = uuid.New()

	// The commit did not happen.
	tx := b.begin(e)
	_, err := tx.Emit(b.Context(), event)
	b.must(err)
	killBackends(b)
	if err := tx.Commit(b.Context()); err == nil {
		b.Fatal("the commit of a killed connection succeeded")
	}
	b.wantCount(0)
	emitAgain(b, e, event, false)

	// The commit did happen, and only its answer was lost.
	emitAgain(b, e, event, true)
	b.wantCount(1)

	if !b.place.dedupe {
		return
	}
	keyed := b.event()
	keyed.DedupeKey = "turn-1"
	first := emitAgain(b, e, keyed, false)
	if again := emitAgain(b, e, keyed, true); again != first {
		b.Errorf("emitted again, the event is %s, and was %s", again, first)
	}
	b.wantCount(2)
}

// emitAgain emits an event in a transaction of its own, and returns the answer's id.
func emitAgain(b *bed, e Emitter, event outbox.Event, already bool) uuid.UUID {
	b.Helper()
	var done outbox.Emitted
	// The pool may hand out the connection that was killed; a caller tries again.
	err := retryOnce(func() error {
		return e.InTx(b.Context(), func(tx Tx) (err error) {
			done, err = tx.Emit(b.Context(), event)
			return err
		})
	})
	b.must(err)
	if done.AlreadyEnqueued != already {
		b.Fatalf("AlreadyEnqueued is %v, want %v", done.AlreadyEnqueued, already)
	}
	return done.ID
}

func retryOnce(work func() error) error {
	if err := work(); err == nil {
		return nil
	}
	return work()
}

// killBackends ends every other connection to the test's database.
func killBackends(b *bed) {
	b.Helper()
	var killed int
	b.must(b.pool.QueryRow(b.Context(), `
		SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid()`).Scan(&killed))
	if killed == 0 {
		b.Fatal("no connection was killed")
	}
}

func testInTx(_ *testing.T, b *bed) {
	nudges := 0
	e := b.emitter(outbox.EmitConfig{Nudge: func() { nudges++; panic("a nudge that fails") }})
	emitOne := func(tx Tx) error {
		_, err := tx.Emit(b.Context(), b.event())
		return err
	}
	b.must(e.InTx(b.Context(), emitOne))
	b.wantCount(1)
	if nudges != 1 {
		b.Fatalf("nudged %d times, want once", nudges)
	}

	failure := errors.New("the business said no")
	err := e.InTx(b.Context(), func(tx Tx) error { return errors.Join(emitOne(tx), failure) })
	if !errors.Is(err, failure) {
		b.Fatalf("got %v, want the caller's own error", err)
	}
	func() {
		defer func() {
			if recover() == nil {
				b.Error("the caller's panic was swallowed")
			}
		}()
		_ = e.InTx(b.Context(), func(tx Tx) error { _ = emitOne(tx); panic("the business fell over") })
	}()
	b.wantCount(1)
	if nudges != 1 {
		b.Fatalf("nudged %d times, want once: nothing more was committed", nudges)
	}
}
