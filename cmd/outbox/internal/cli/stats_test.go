package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/pgstream"
)

func TestStats(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	s.emit(7)
	s.run("", "subscriptions create billing --from-now")
	s.kill("k2")
	s.emit(3)
	tx, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), `SELECT`); err != nil {
		t.Fatal(err)
	}
	all := s.run("", "stats")
	for _, words := range []string{
		"subscription billing\n", "subscription default\n", "SHARD  UNREAD  OLDEST", "\nall    3 ",
		"parked: 0 to retry, 0 waiting behind one, 0 stopped, 1 dead, 0 held\n", "no relay serves it\n", "oldest transaction: process ",
	} {
		if !strings.Contains(all, words) {
			t.Errorf("stats lacks %q:\n%s", words, all)
		}
	}
	var lag pgstream.Lag
	if err := json.Unmarshal([]byte(s.run("", "stats --subscription default --json")), &lag); err != nil {
		t.Fatal(err)
	}
	if lag.Subscription != "default" || len(lag.Shards) != 8 || lag.Parked["dead"] != 1 || lag.OldestTransaction == nil {
		t.Errorf("stats --json: %+v", lag)
	}
	s.refuses("there is no such subscription", "stats --subscription nobody")
	s.refuses("there is no stream; make it with outbox migrate up", "stats --schema elsewhere")
	s.refuses("is a table and has none", "stats --layout modkit --subscription default")
	refused(t, "cannot reach the database", "", "stats", "--from", "postgres://u:hunter2@127.0.0.1:1/x")

	s.run("", "migrate up --layout modkit")
	s.run(`{"namespace":"shop","topic":"orders","payload":{}}`, "emit --layout modkit")
	if got := s.run("", "stats --layout modkit"); !strings.Contains(got, "\ndue                           1\n") {
		t.Errorf("stats of a table: %s", got)
	}
	if got := s.run("", "stats --layout modkit --json"); !strings.HasPrefix(got, `{"layout":"modkit","due":1,`) {
		t.Errorf("stats --json of a table: %s", got)
	}
}

// TestStopped has an event that waits for a topic which takes nothing: every command that shows events says so.
func TestStopped(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	s.emit(2)
	s.kill("k1")
	pgtest.Exec(t, s.pool, `UPDATE outbox_parked SET state = 'stopped', route = 'refunds', attempts = 0, reason = NULL, last_error = 'no stream refunds'`)
	for command, words := range map[string]string{
		"list --state stopped":  "stopped",
		"stats":                 "parked: 0 to retry, 0 waiting behind one, 1 stopped, 0 dead, 0 held\ntopic refunds is closed: 1 event stopped, the oldest",
		"top":                   "topic refunds is closed: 1 event stopped",
		"doctor --check topics": `topic "refunds" takes nothing; 1 event waits for it`,
		"list --state stopped --subscription default": "k1",
		"list --state stopped --topic nowhere --json": "",
		"top --json":   `"stopped":[{"topic":"refunds","count":1,`,
		"stats --json": `"stopped":1`,
	} {
		if got := s.run("", command); !strings.Contains(got, words) {
			t.Errorf("%s lacks %q:\n%s", command, words, got)
		}
	}
}
