package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/layouts/layoutfile"
	"github.com/packfinderz/outbox/layouts/modkit"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/testdb"
	"github.com/packfinderz/outbox/packfinderz/internal/backendtest"
	"github.com/packfinderz/outbox/packfinderz/internal/env"
	"github.com/packfinderz/outbox/packfinderz/internal/program"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/payloads"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/registry"
)

// writeLayout is the file of a layout.
func writeLayout(t *testing.T, layout layouts.Layout) string {
	t.Helper()
	content, err := layoutfile.Format(layout)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "layout.yaml")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A table that differs from the contract's is served by a layout file: the payload is in another column, and the letters cannot
// say that they were retried. What is good goes out, what is not is a dead letter and is counted, and the cleanup knows both tables.
func TestALayoutOfItsOwn(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	testdb.Exec(t, b.pool, `
		ALTER TABLE outbox_events RENAME COLUMN payload_json TO payload;
		ALTER TABLE outbox_dlq RENAME COLUMN payload_json TO payload;
		ALTER TABLE outbox_dlq DROP COLUMN retried_at CASCADE`)
	layout := registry.Layout()
	layout.Columns.Payload.Name, layout.DeadLetter.Columns.Payload.Name = "payload", "payload"
	layout.DeadLetter.Columns.RetriedAt = layouts.Column{}
	b.env["PACKFINDERZ_OUTBOX_LAYOUT_FILE"] = writeLayout(t, layout)
	var err error
	if b.events, err = outbox.NewService(outbox.Config{Layout: &layout}); err != nil {
		t.Fatal(err)
	}
	stop := b.start()
	good := b.emit(payloads.AdActivated{})[0]
	testdb.Exec(t, b.pool, `INSERT INTO outbox_events (id, event_type, aggregate_type, aggregate_id, payload)
		VALUES (gen_random_uuid(), 'ad_paused', 'ad', gen_random_uuid(), '{}')`)
	await.Until(t, "one published event and one dead letter", func() bool {
		return backendtest.Count(t, b.pool, `SELECT count(*) FROM outbox_events WHERE published_at IS NOT NULL AND id = $1`, good) == 1 &&
			backendtest.Count(t, b.pool, `SELECT count(*) FROM outbox_dlq WHERE error_reason = 'invalid_payload'`) == 1
	})
	backendtest.AwaitMetrics(t, b.listen, `packfinderz_outbox_dlq_events{reason="invalid_payload"} 1`)
	stop()
	testdb.Exec(t, b.pool, `UPDATE outbox_events SET published_at = now() - interval '60 days' WHERE id = $1`, good)
	if err := b.run(t.Context(), "cleanup"); err != nil {
		t.Fatal(err)
	}
	if n := backendtest.Count(t, b.pool, `SELECT count(*) FROM outbox_events`); n != 1 {
		t.Errorf("%d rows after the cleanup, want the dead one", n)
	}
}

// A file that cannot be used is refused at the start, by the name of its variable.
func TestALayoutThatCannotBe(t *testing.T) {
	t.Parallel()
	for says, file := range map[string]string{
		"no such file":            filepath.Join(t.TempDir(), "none.yaml"),
		"has no dead-letter tabl": writeLayout(t, modkit.Layout()),
	} {
		for _, args := range [][]string{nil, {"cleanup"}} {
			err := run(t.Context(), args, environment(map[string]string{"PACKFINDERZ_OUTBOX_LAYOUT_FILE": file}), nil)
			if !errors.Is(err, env.ErrUsage) || !strings.Contains(err.Error(), "PACKFINDERZ_OUTBOX_LAYOUT_FILE cannot be used") ||
				!strings.Contains(err.Error(), says) || program.ExitCode(err) != 2 {
				t.Errorf("%s: %v", says, err)
			}
		}
	}
}
