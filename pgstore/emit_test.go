package pgstore_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/pgtest"
	"github.com/packfinderz/outbox/layouts/doorito"
	"github.com/packfinderz/outbox/outboxpgx"
)

// TestCustomLayout emits into a table of a team's own, with the fields that no shipped
// layout has: headers, key, content type, bytes.
func TestCustomLayout(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	pgtest.Exec(t, pool, oursSQL)
	emitter, err := outboxpgx.New(ours(), nil)
	if err != nil {
		t.Fatal(err)
	}
	event := outbox.Event{
		Type: "made", Key: "k", Headers: map[string]string{"trace": `<"\>`}, ContentType: "application/octet-stream",
		Payload: []byte{0, 0xff, '{'},
	}
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	one, err := emitter.Emit(t.Context(), tx, event)
	if err != nil {
		t.Fatal(err)
	}
	empty := event
	empty.Payload = []byte{}                                     // bytes may be empty
	other := outbox.Event{Type: "gone", Payload: []byte("bare")} // shares nothing, and sets less
	alike, err := emitter.EmitMany(t.Context(), tx, []outbox.Event{event, event})
	if err != nil {
		t.Fatal(err)
	}
	many, err := emitter.EmitMany(t.Context(), tx, []outbox.Event{event, empty, other})
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[uuid.UUID]outbox.Event{
		one.ID: event, alike[0].ID: event, alike[1].ID: event, many[0].ID: event, many[1].ID: empty, many[2].ID: other,
	} {
		var got outbox.Event
		err := tx.QueryRow(t.Context(), `
			SELECT kind, coalesce(part, ''), headers, coalesce(media, ''), body FROM app."Our Events" WHERE no = $1`, id).
			Scan(&got.Type, &got.Key, &got.Headers, &got.ContentType, &got.Payload)
		if err != nil {
			t.Fatal(err)
		}
		if got.Type != want.Type || got.Key != want.Key || got.Headers["trace"] != want.Headers["trace"] ||
			got.ContentType != want.ContentType || string(got.Payload) != string(want.Payload) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

// TestDjangoTable runs the Doorito layout on a table made the way Django makes it: no
// defaults in the database, under the app's name.
func TestDjangoTable(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	pgtest.Exec(t, pool, `
		CREATE TABLE "common_outboxevent" (
			"created_at" timestamp with time zone NOT NULL, "updated_at" timestamp with time zone NOT NULL,
			"id" uuid NOT NULL PRIMARY KEY, "aggregate_type" varchar(100) NOT NULL, "aggregate_id" varchar(100) NOT NULL,
			"event_type" varchar(100) NOT NULL, "payload" jsonb NOT NULL, "status" varchar(20) NOT NULL,
			"idempotency_key" varchar(255) NOT NULL, "attempts" integer NOT NULL CHECK ("attempts" >= 0),
			"max_attempts" integer NOT NULL CHECK ("max_attempts" >= 0), "next_attempt_at" timestamp with time zone NULL,
			"delivered_at" timestamp with time zone NULL, "error_message" text NOT NULL
		);
		CREATE INDEX "idx_outbox_event_pending_next_attempt" ON "common_outboxevent" ("next_attempt_at") WHERE "status" = 'pending';
		ALTER TABLE "common_outboxevent" ADD CONSTRAINT "unique_event_type_idempotency_key" UNIQUE ("event_type", "idempotency_key")`)
	layout := doorito.Layout()
	layout.Table = "common_outboxevent"
	emitter, err := outboxpgx.New(layout, nil)
	if err != nil {
		t.Fatal(err)
	}
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	event := outbox.Event{Type: "user.created", AggregateType: "User", AggregateID: "7", Payload: []byte(`{}`)}
	done, err := emitter.Emit(t.Context(), tx, event)
	if err != nil {
		t.Fatal(err)
	}
	var key, status, message string
	var maximum int
	var due bool
	err = tx.QueryRow(t.Context(), `
		SELECT idempotency_key, status, error_message, max_attempts, next_attempt_at <= now()
		FROM common_outboxevent WHERE id = $1`, done.ID).Scan(&key, &status, &message, &maximum, &due)
	if err != nil {
		t.Fatal(err)
	}
	// A key of its own, five attempts and due now, as the model says.
	if key != done.ID.String() || status != "pending" || message != "" || maximum != 5 || !due {
		t.Errorf("got key %q, status %q, message %q, maximum %d, due %v", key, status, message, maximum, due)
	}
}
