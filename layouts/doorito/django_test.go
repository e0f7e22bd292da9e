package doorito_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/docpage"
	"github.com/packfinderz/outbox/internal/pgtest"
	"github.com/packfinderz/outbox/layouts/doorito"
)

// page is the documentation of the layout.
const page = "../../docs/doorito.md"

// djangoTable is the table as Django's migration makes it of the model: under the app's name, with
// no defaults in the database.
const djangoTable = `
	CREATE TABLE "common_outboxevent" (
		"created_at" timestamp with time zone NOT NULL, "updated_at" timestamp with time zone NOT NULL,
		"id" uuid NOT NULL PRIMARY KEY, "aggregate_type" varchar(100) NOT NULL, "aggregate_id" varchar(100) NOT NULL,
		"event_type" varchar(100) NOT NULL, "payload" jsonb NOT NULL, "status" varchar(20) NOT NULL,
		"idempotency_key" varchar(255) NOT NULL, "attempts" integer NOT NULL CHECK ("attempts" >= 0),
		"max_attempts" integer NOT NULL CHECK ("max_attempts" >= 0), "next_attempt_at" timestamp with time zone NULL,
		"delivered_at" timestamp with time zone NULL, "error_message" text NOT NULL
	);
	CREATE INDEX "idx_outbox_event_pending" ON "common_outboxevent" ("next_attempt_at") WHERE "status" = 'pending';
	ALTER TABLE "common_outboxevent" ADD CONSTRAINT "unique_event_type_idempotency_key" UNIQUE ("event_type", "idempotency_key")`

// djangoBed is a service on such a table.
func djangoBed(t *testing.T) *bed {
	t.Helper()
	pool := pgtest.Pool(t)
	pgtest.Exec(t, pool, djangoTable)
	layout := doorito.Layout()
	layout.Table = "common_outboxevent"
	return newBedOn(t, pool, layout)
}

// TestDjangoTable emits to a table that Django made, and delivers from it.
func TestDjangoTable(t *testing.T) {
	t.Parallel()
	b := djangoBed(t)
	id := b.emit()
	got := b.row(id)
	// A key of its own, five attempts and due now, as the model says.
	if got.IdempotencyKey != id.String() || got.Status != "pending" || got.ErrorMessage != "" || got.MaxAttempts != 5 ||
		got.NextAttemptAt == nil || got.NextAttemptAt.After(got.DatabaseClock) {
		t.Errorf("%+v", got)
	}
	b.handle("file.stored", succeed)
	b.start()
	b.ended(b.await(id, "delivered", 0))
}

// TestDjangoInsert delivers a row that Django's ORM wrote: the statement of the documentation, which
// is what OutboxEvent.objects.create sends.
func TestDjangoInsert(t *testing.T) {
	t.Parallel()
	b := djangoBed(t)
	handled := make(chan outbox.Message, 1)
	b.handle("file.stored", func(_ context.Context, message outbox.Message) error {
		handled <- message
		return nil
	})
	b.start()
	pgtest.Exec(t, b.pool, documented(t, "Django sends"))
	id := uuid.MustParse("01954321-0000-7000-8000-00000000000a")
	got := b.await(id, "delivered", 0)
	b.ended(got)
	message := <-handled
	if message.ID != id || message.AggregateType != "UploadFile" || message.AggregateID != "42" || message.DedupeKey != "upload-42" ||
		message.MaxAttempts != 5 || string(message.Payload) != got.Payload || !strings.Contains(got.Payload, `"19.90"`) {
		t.Errorf("handled %+v of %+v", message, got)
	}
}

// TestPlainInsert delivers a row that names only what an event has to have, on the shipped table: the
// rest has defaults. A second one with its key is no error, and no second event.
func TestPlainInsert(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.handle("user.created", succeed)
	b.start()
	insert := documented(t, "any language")
	for range 2 {
		pgtest.Exec(t, b.pool, insert)
	}
	var id uuid.UUID
	if err := b.pool.QueryRow(t.Context(), `SELECT id FROM outbox_event`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	b.ended(b.await(id, "delivered", 0))
}

// documented is the statement of docs/doorito.md that begins with a comment.
func documented(t *testing.T, comment string) string {
	t.Helper()
	for _, statement := range docpage.Blocks(t, page, "sql") {
		if first, _, _ := strings.Cut(statement, "\n"); strings.Contains(first, comment) {
			return statement
		}
	}
	t.Fatalf("%s has no statement with a comment %q", page, comment)
	return ""
}

// TestDocumentation keeps the Go of the page what is compiled and run here.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	docpage.Holds(t, page, "go", "example_test.go")
}
