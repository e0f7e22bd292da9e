package cli_test

import (
	"testing"

	"github.com/packfinderz/outbox/internal/pgtest"
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
	would := "would repair 1 subscription and park 30 undelivered events, due now\n  default: 30 events certainly not delivered, 0 events in doubt\n"
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
