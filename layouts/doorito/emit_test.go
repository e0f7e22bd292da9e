package doorito_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/layouts/doorito"
	"github.com/packfinderz/outbox/outboxsql"
)

// TestEmitEvent checks the row of a new event, column by column.
func TestEmitEvent(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	payload := struct {
		StoredAt time.Time `json:"stored_at"`
		Owner    uuid.UUID `json:"owner"`
		Price    decimal   `json:"price"`
	}{time.Date(2026, 2, 26, 9, 30, 0, 1_000_000, time.UTC), uuid.Max, "19.90"}
	var emitted outbox.Emitted
	err := pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) (err error) {
		emitted, err = doorito.EmitEvent(t.Context(), b.emitter, tx, "UploadFile", "42", "file.stored", payload,
			doorito.IdempotencyKey("upload-42"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	got := b.row(emitted.ID)
	want := row{
		ID: emitted.ID, AggregateType: "UploadFile", AggregateID: "42", EventType: "file.stored",
		Payload: `{"owner": "ffffffff-ffff-ffff-ffff-ffffffffffff", "price": "19.90", "stored_at": "2026-02-26T09:30:00.001Z"}`,
		Status:  "pending", IdempotencyKey: "upload-42", Attempts: 0, MaxAttempts: 5, ErrorMessage: "",
		// Due from its creation on, by the database's clock.
		NextAttemptAt: &got.CreatedAt, CreatedAt: got.CreatedAt, UpdatedAt: got.CreatedAt, DatabaseClock: got.DatabaseClock,
	}
	if got.NextAttemptAt == nil || !got.NextAttemptAt.Equal(got.CreatedAt) {
		t.Errorf("due at %v, want %s", got.NextAttemptAt, got.CreatedAt)
	}
	got.NextAttemptAt = want.NextAttemptAt
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got.ID.Version() != 7 {
		t.Errorf("the id is a UUIDv%d", got.ID.Version())
	}
}

// TestEmitEventNames emits with names of any form: they are the application's business.
func TestEmitEventNames(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	err := b.emitter.InTx(t.Context(), b.pool, func(tx pgx.Tx) error {
		for _, name := range []string{"User", "user.created", "user created!", "Benutzer/angelegt", strings.Repeat("ü", 100)} {
			if _, err := doorito.EmitEvent(t.Context(), b.emitter, tx, name, name, name, map[string]any{}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestIdempotencyKey emits keys again: the same type and key are one event, and an event without a key is always a
// new one.
func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	emit := func(eventType string, options ...doorito.Option) (emitted outbox.Emitted) {
		t.Helper()
		err := b.emitter.InTx(t.Context(), b.pool, func(tx pgx.Tx) (err error) {
			emitted, err = doorito.EmitEvent(t.Context(), b.emitter, tx, "User", "7", eventType, struct{}{}, options...)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return emitted
	}
	first := emit("user.created", doorito.IdempotencyKey("signup-7"))
	if again := emit("user.created", doorito.IdempotencyKey("signup-7")); again.ID != first.ID || !again.AlreadyEnqueued {
		t.Errorf("a repeated key is %+v, want event %s", again, first.ID)
	}
	if other := emit("user.renamed", doorito.IdempotencyKey("signup-7")); other.ID == first.ID || other.AlreadyEnqueued {
		t.Errorf("the key of another type is %+v", other)
	}
	for _, options := range [][]doorito.Option{nil, nil, {doorito.IdempotencyKey("")}} {
		if own := emit("user.created", options...); own.AlreadyEnqueued || b.row(own.ID).IdempotencyKey != own.ID.String() {
			t.Errorf("an event without a key is %+v, with key %q", own, b.row(own.ID).IdempotencyKey)
		}
	}
	// The database itself enforces it, whoever writes.
	_, err := b.pool.Exec(t.Context(), `INSERT INTO outbox_event (id, aggregate_type, aggregate_id, event_type, idempotency_key)
		VALUES (gen_random_uuid(), 'User', '7', 'user.created', 'signup-7')`)
	if err == nil || !strings.Contains(err.Error(), "unique_event_type_idempotency_key") {
		t.Errorf("a second row with the key: %v", err)
	}
}

// TestEmitEventRollsBack rolls back: the event vanishes with its change.
func TestEmitEventRollsBack(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	change := errors.New("the disk is full")
	err := b.emitter.InTx(t.Context(), b.pool, func(tx pgx.Tx) error {
		if _, err := doorito.EmitEvent(t.Context(), b.emitter, tx, "UploadFile", "42", "file.stored", struct{}{}); err != nil {
			return err
		}
		return change
	})
	if !errors.Is(err, change) {
		t.Errorf("got %v", err)
	}
	var n int
	if err := b.pool.QueryRow(t.Context(), `SELECT count(*) FROM outbox_event`).Scan(&n); err != nil || n != 0 {
		t.Errorf("%d events are left (%v)", n, err)
	}
}

// TestEmitEventRefuses emits payloads that are refused before the transaction is touched. It uses database/sql:
// EmitEvent takes any emitter.
func TestEmitEventRefuses(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	db := stdlib.OpenDBFromPool(b.pool)
	defer func() { _ = db.Close() }()
	emitter, err := outboxsql.New(doorito.Layout(), outbox.EmitConfig{})
	if err != nil {
		t.Fatal(err)
	}
	err = emitter.InTx(t.Context(), db, func(tx *sql.Tx) error {
		emit := func(ctx context.Context, payload any) error {
			_, err := doorito.EmitEvent(ctx, emitter, tx, "User", "7", "user.created", payload)
			return err
		}
		for words, payload := range map[string]any{
			"event 0: payload is nil":                                   nil,
			`event 0: payload has text that is not valid UTF-8: "\xff"`: map[string]string{"name": "\xff"},
			"event 0: payload contains U+0000":                          map[string]string{"name": "\x00"},
		} {
			var refused *outbox.EventError
			if err := emit(t.Context(), payload); !errors.As(err, &refused) || !strings.Contains(err.Error(), words) {
				t.Errorf("%v: %v, want %s", payload, err, words)
			}
		}
		return emit(t.Context(), map[string]any{"name": "fine"})
	})
	if err != nil {
		t.Error(err)
	}
}
