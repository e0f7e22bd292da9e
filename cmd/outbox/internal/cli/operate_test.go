package cli_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/packfinderz/outbox/internal/pgtest"
	"github.com/packfinderz/outbox/pgstream"
)

const quiet = " --to stdout: --log-level error"

func TestReplay(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	s.emit(70)
	first := delivered(t, s.run("", "drain"+quiet))
	var want []delivery
	for _, event := range first {
		if event.Key == "k3" {
			want = append(want, event)
		}
	}
	if got := s.run("", "replay --key k3 --topic orders --type placed --dry-run"); got != "would replay 10 events\n" {
		t.Errorf("a dry run prints %q", got)
	}
	if got := s.run("", "drain"+quiet); got != "" {
		t.Errorf("a dry run replayed %s", got)
	}
	if got := s.run("", "replay --key k3"); got != "replaying 10 events through the relay of subscription default\n" {
		t.Errorf("replay prints %q", got)
	}
	if got := delivered(t, s.run("", "drain"+quiet)); !slices.Equal(got, want) {
		t.Errorf("replayed %v, want %v", got, want)
	}
	if got := s.run("", "replay --json --rate 1000/s --id "+want[0].ID); got != `{"dryRun":false,"events":1}`+"\n" {
		t.Errorf("replay --json prints %q", got)
	}
	hour := time.Hour
	for span, events := range map[string]string{
		"--since " + time.Now().Add(-hour).Format(time.RFC3339) + " --until " + time.Now().Add(hour).Format(time.RFC3339): "70 events",
		"--since " + time.Now().Add(hour).Format(time.RFC3339):                                                            "0 events",
		"--until " + time.Now().Add(-hour).Format(time.RFC3339):                                                           "0 events",
	} {
		if got := s.run("", "replay --dry-run "+span); got != "would replay "+events+"\n" {
			t.Errorf("replay %s: %q", span, got)
		}
	}
}

func TestReplayRefuses(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	s.refuses("say what to replay", "replay")
	s.refuses("not a UUID", "replay --id 7")
	s.refuses("--since is", "replay --since yesterday")
	s.refuses("--until is", "replay --until tomorrow")
	s.refuses("--until is not after", "replay --since 2030-01-31T12:00:00Z --until 2030-01-31T12:00:00Z")
	for _, rate := range []string{"0", "-1/s", "fast", "1.5/s", "9999999999999999999"} {
		s.refuses("it looks like 100/s", "replay --key k --rate "+rate)
	}
	s.refuses("there is no such subscription", "replay --key k --subscription nobody")
	s.refuses("there is no stream", "replay --key k --schema elsewhere")
	pgtest.Exec(t, s.pool, `UPDATE outbox_shards SET q1 = 1000000`)
	s.refuses("run outbox repair", "replay --key k")
	refused(t, "cannot reach the database", "", "replay", "--key", "k", "--from", "postgres://u:hunter2@127.0.0.1:1/x")
	if got := s.count("outbox_parked"); got != 0 {
		t.Errorf("something was written: %d rows", got)
	}
}

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
	got := run(t, "", s.args("retry", []string{id, other})...)
	if got.code != 1 || got.out != "retrying 1 event\n" || !strings.Contains(got.err, other) || strings.Contains(got.err, id) {
		t.Errorf("retry of a dead event and another: %+v", got)
	}
	if got := delivered(t, s.run("", "drain"+quiet)); len(got) != 1 || got[0].ID != id {
		t.Errorf("after the retry %v arrives", got)
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
		"parked: 0 to retry, 0 waiting behind one, 1 dead, 0 held\n", "no relay serves it\n", "oldest transaction: process ",
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
	s.refuses("make the stream with outbox migrate up", "stats --schema elsewhere")
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
