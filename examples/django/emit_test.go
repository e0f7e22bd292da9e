package main

import (
	"os/exec"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts/doorito"
	"github.com/packfinderz/outbox/outboxpgx"
)

// TestGoEmits has a Go service write the table that Django made. Its event is as Django's own would be, and Django's
// handler cannot tell the difference.
func TestGoEmits(t *testing.T) {
	t.Parallel()
	p := testProject(t, buildProgram(t))
	p.mustManage(t, "migrate")
	pool := pgtest.Connect(t, p.database)
	layout := doorito.Layout()
	layout.Table = "common_outboxevent"
	emitter, err := outboxpgx.New(layout, outbox.EmitConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var emitted outbox.Emitted
	err = pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) (err error) {
		emitted, err = doorito.EmitEvent(t.Context(), emitter, tx, "UploadFile", "42", "file.stored", map[string]any{
			"file_id": 42, "name": "cat.png", "owner": uuid.Max, "took": time.Second,
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	// As the model's defaults and emit_event have it.
	var asDjango bool
	err = pool.QueryRow(t.Context(), `
		SELECT idempotency_key = id::text AND status = 'pending' AND attempts = 0 AND max_attempts = 5 AND next_attempt_at <= now()
			AND delivered_at IS NULL AND error_message = '' AND created_at <= now() AND updated_at <= now()
		FROM common_outboxevent WHERE id = $1`, emitted.ID).Scan(&asDjango)
	if err != nil || !asDjango {
		t.Errorf("the row is as Django's: %t (%v)", asDjango, err)
	}

	p.mustServe(t)
	p.mustManage(t, "deliver_outbox")
	var status, title string
	err = pool.QueryRow(t.Context(), `
		SELECT event.status, thumbnail.title FROM common_outboxevent event, uploads_thumbnail thumbnail
		WHERE thumbnail.file_id = (event.payload->>'file_id')::bigint`).Scan(&status, &title)
	if err != nil || status != "delivered" || title != "thumbnail of cat.png" {
		t.Errorf("the event is %s, and the handler made %q (%v)", status, title, err)
	}
}

// TestWithoutDjango has a script write the shipped table.
func TestWithoutDjango(t *testing.T) {
	t.Parallel()
	p := testProject(t, "outbox") // which nothing here runs
	pool := pgtest.Connect(t, p.database)
	files, err := doorito.Migrations(doorito.Layout())
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Migrate(t, pool, "", files)
	script := exec.CommandContext(t.Context(), p.python, "without_django.py", p.database)
	if output, err := script.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	var due bool
	err = pool.QueryRow(t.Context(), `
		SELECT status = 'pending' AND next_attempt_at <= now() AND payload = '{"email": "grace@example.com"}'
		FROM outbox_event, accounts WHERE email = payload->>'email'`).Scan(&due)
	if err != nil || !due {
		t.Errorf("the event is due: %t (%v)", due, err)
	}
}
