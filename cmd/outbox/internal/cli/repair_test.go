package cli_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/outboxtest/await"
)

// TestRepair takes cursors that are ahead of the server for those of another one.
func TestRepair(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	if got := s.run("", "repair"); got != "nothing to repair\n" {
		t.Errorf("a stream that is well: %q", got)
	}
	s.emit(5)
	pgtest.Exec(t, s.pool, `UPDATE outbox_shards SET q1 = 1000000, hi = 1000000`)
	s.refuses("run outbox repair", "drain --to discard:")
	if got := s.run("", "repair"); got != "repaired 1 subscription; parked 5 undelivered events, due now\n" {
		t.Errorf("repair prints %q", got)
	}
	if got := s.run("", "repair --json"); got != `{"events":0,"subscriptions":0}`+"\n" {
		t.Errorf("repair --json prints %q", got)
	}
	if got := delivered(t, s.run("", "drain"+quiet)); len(got) != 5 {
		t.Errorf("after the repair %d events arrive", len(got))
	}
	s.refuses("there is no stream", "repair --schema elsewhere")
	refused(t, "cannot reach the database", "", "repair", "--from", "postgres://u:hunter2@127.0.0.1:1/x")
}

// TestRestore goes the way of an operator whose database was restored from a dump.
func TestRestore(t *testing.T) {
	t.Parallel()
	old := newStandard(t)
	for range 2000 {
		pgtest.Exec(t, old.pool, `SELECT pg_current_xact_id()`) // the old server is older than the new one
	}
	old.emit(20)
	if got := delivered(t, old.run("", "drain"+quiet)); len(got) != 20 {
		t.Fatalf("%d events delivered", len(got))
	}
	old.emit(30)
	restored := &standard{T: t, url: pgtest.Restore(t, old.url)}
	for _, command := range []string{"relay", "drain"} {
		restored.refuses("run outbox repair", command+quiet)
	}
	for _, command := range []string{"stats", "list", "retry --all", "subscriptions create late"} {
		restored.refuses("run outbox repair", command)
	}
	would := "would repair 1 subscription and park 30 undelivered events, due now\n  default: 30 events not settled, 0 events in doubt\n"
	if got := restored.run("", "repair --dry-run"); got != would {
		t.Errorf("repair --dry-run prints %q", got)
	}
	restored.refuses("there is no such subscription", "repair --subscription nobody")
	if got := restored.run("", "repair"); got != "repaired 1 subscription; parked 30 undelivered events, due now\n" {
		t.Errorf("repair prints %q", got)
	}
	restored.emit(5)
	if got := delivered(t, restored.run("", "drain"+quiet)); len(got) != 35 {
		t.Errorf("%d events delivered after the repair, want 35", len(got))
	}
}

// TestReadyWhileRefused has a relay that runs when the sequence is set back: it is not ready until the repair, and goes on by
// itself.
func TestReadyWhileRefused(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	log, _ := s.background("relay --poll 50ms --lease 3s --to discard: --listen 127.0.0.1:0")
	log.Await(t, "address=")
	_, address, _ := strings.Cut(log.Line("address="), "address=")
	ready := func() (int, string) { return fetch(t, "http://"+strings.TrimSpace(address)+"/readyz", "") }
	await.Until(t, "the relay to be ready", func() bool { status, _ := ready(); return status == http.StatusOK })
	s.emit(5)
	await.Until(t, "the events to be read", func() bool { return s.count("outbox_shards WHERE q1 > 0") > 0 })
	pgtest.Exec(t, s.pool, `SELECT setval('outbox_stream_seq', 1)`)
	if status, body := ready(); status != http.StatusServiceUnavailable || !strings.Contains(body, "run outbox repair") {
		t.Errorf("while the sequence is behind: %d, %s", status, body)
	}
	s.run("", "repair")
	await.Until(t, "the relay to be ready again", func() bool { status, _ := ready(); return status == http.StatusOK })
	s.emit(5)
	await.Until(t, "the events to be delivered", func() bool { return s.count("outbox_parked") == 0 && s.count("outbox_deliveries") > 0 })
}

// TestRepairOneByOne lets one subscription go on, and then the other.
func TestRepairOneByOne(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	s.run("", "subscriptions create other")
	s.emit(5)
	pgtest.Exec(t, s.pool, `UPDATE outbox_shards SET q1 = 1000000, hi = 1000000`)
	want := "repaired 1 subscription; parked 5 undelivered events, due now\n" +
		"  default: 5 events not settled, 0 events in doubt\n" +
		"  other: 5 events not settled, 0 events in doubt; refused until it is repaired, too\n"
	if got := s.run("", "repair --subscription default"); got != want {
		t.Errorf("repair --subscription prints %q", got)
	}
	s.run("", "drain"+quiet)
	s.refuses("has not been repaired", "drain --subscription other"+quiet)
	want = "repaired 1 subscription; parked 0 undelivered events, due now\n  other: was put right by an earlier repair, and goes on\n"
	if got := s.run("", "repair"); got != want {
		t.Errorf("the second repair prints %q", got)
	}
	if got := delivered(t, s.run("", "drain --subscription other"+quiet)); len(got) != 5 {
		t.Errorf("%d events arrive, want 5", len(got))
	}
}
