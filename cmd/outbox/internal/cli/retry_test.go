package cli_test

import (
	"strings"
	"testing"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

// kill makes the events of a key dead: they have a date that JSON has not.
func (s *standard) kill(key string) {
	s.Helper()
	pgtest.Exec(s.T, s.pool, `UPDATE outbox_stream SET created_at = '12000-01-01' WHERE key = $1`, key)
	s.run("", "drain"+quiet)
	pgtest.Exec(s.T, s.pool, `UPDATE outbox_parked SET created_at = now() WHERE key = $1`, key)
}

func TestRetry(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	s.emit(7)
	s.kill("k2")
	var id string
	if err := s.pool.QueryRow(t.Context(), `SELECT id::text FROM outbox_parked WHERE state = 'dead'`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	other := "01890000-0000-7000-8000-000000000000"
	var got result
	s.hears(func() { got = run(t, "", s.args("retry", []string{id, other})...) })
	if got.code != 1 || got.out != "retrying 1 event\n" || !strings.Contains(got.err, "there is no such event: "+other) || strings.Contains(got.err, id) {
		t.Errorf("retry of a dead event and another: %+v", got)
	}
	if got := delivered(t, s.run("", "drain"+quiet)); len(got) != 1 || got[0].ID != id {
		t.Errorf("after the retry %v arrives", got)
	}
	if got := run(t, "", s.args("retry", []string{id})...); got.code != 1 || !strings.Contains(got.err, "not dead, and left alone: "+id) {
		t.Errorf("retry of a delivered event: %+v", got)
	}
	s.refuses("takes the ids", "retry")
	s.refuses("is not the id of an event", "retry 7")
	s.refuses("there is no such subscription", "retry --subscription nobody", id)
	s.refuses("there is no stream", "retry --schema elsewhere", id)
	s.refuses("is a table and has none", "retry --layout modkit --subscription default", id)
	refused(t, "cannot reach the database", "", "retry", id, "--from", "postgres://u:hunter2@127.0.0.1:1/x")

	// A queue table's, too.
	s.run("", "migrate up --layout modkit")
	s.run(`{"namespace":"shop","topic":"orders","payload":{}}`, "emit --layout modkit")
	pgtest.Exec(t, s.pool, `UPDATE modkit_outbox_events SET status = 'dead', attempts = 10`)
	if err := s.pool.QueryRow(t.Context(), `SELECT id::text FROM modkit_outbox_events`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	if got := s.run("", "retry --layout modkit --json", id); got != `{"retried":["`+id+`"]}`+"\n" {
		t.Errorf("retry --json prints %q", got)
	}
	if got := delivered(t, s.run("", "drain --layout modkit"+quiet)); len(got) != 1 {
		t.Errorf("after the retry %v arrives", got)
	}
}

// TestRetryDoorito has a row of the Doorito contract fail and come back: pending, no attempts, due now,
// with its error until it is tried.
func TestRetryDoorito(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	s.run("", "migrate up --layout doorito")
	s.run(`{"type":"file.stored","aggregateType":"UploadFile","aggregateId":"42","payload":{}}`, "emit --layout doorito")
	pgtest.Exec(t, s.pool, `UPDATE outbox_event SET status = 'failed', attempts = 5, next_attempt_at = NULL, error_message = 'busy'`)
	var id string
	if err := s.pool.QueryRow(t.Context(), `SELECT id::text FROM outbox_event`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	if got := s.run("", "retry --layout doorito", id); got != "retrying 1 event\n" {
		t.Errorf("retry prints %q", got)
	}
	if s.count(`outbox_event WHERE status = 'pending' AND attempts = 0 AND next_attempt_at <= now() AND error_message = 'busy'`) != 1 {
		t.Error("the row is not pending, without attempts and due")
	}
	if got := delivered(t, s.run("", "drain --layout doorito"+quiet)); len(got) != 1 || got[0].ID != id {
		t.Errorf("after the retry %v arrives", got)
	}
}
