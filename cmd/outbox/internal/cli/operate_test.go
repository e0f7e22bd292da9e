package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/packfinderz/outbox/cmd/outbox/internal/cli"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

// TestOperations goes the way of a person on call: look, find, read, retry, see it delivered.
func TestOperations(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	s.run("", "migrate up --audit")
	s.emit(14)
	s.kill("k2")
	if got := s.run("", "top"); !strings.Contains(got, "dead                          2\n") || !strings.Contains(got, "no relay is alive") {
		t.Errorf("top prints %s", got)
	}
	list := s.run("", "list --state dead")
	if strings.Count(list, "\n") != 3 || !strings.HasPrefix(list, "ID ") || !strings.Contains(list, "k2") {
		t.Errorf("list prints %s", list)
	}
	id := strings.Fields(strings.Split(list, "\n")[1])[0]
	show := s.run("", "show "+id)
	for _, words := range []string{"state       dead\n", `"order": `, "emitted", "last error"} {
		if !strings.Contains(show, words) {
			t.Errorf("show lacks %q:\n%s", words, show)
		}
	}
	var details struct{ ID, State, LastError string }
	if err := json.Unmarshal([]byte(s.run("", "show --json "+id)), &details); err != nil || details.ID != id || details.State != "dead" {
		t.Errorf("show --json: %+v, %v", details, err)
	}
	if got := s.run("", "list --dead-groups"); !strings.Contains(got, "placed") {
		t.Errorf("list --dead-groups prints %s", got)
	}
	if got := s.run("", "retry --type placed --dry-run"); got != "would retry 2 events\n" {
		t.Errorf("a dry run prints %q", got)
	}
	if got := s.run("", "retry --all --as alice"); got != "retrying 2 events\n" {
		t.Errorf("retry prints %q", got)
	}
	if got := delivered(t, s.run("", "drain"+quiet)); len(got) != 2 {
		t.Errorf("after the retry %v arrives", got)
	}
	if got := s.run("", "show "+id); !strings.Contains(got, "by alice") {
		t.Errorf("the history lacks who retried it:\n%s", got)
	}
	if got := s.run("", "audit"); !strings.Contains(got, "alice  retry  2       done") {
		t.Errorf("audit prints %s", got)
	}
	page := run(t, "", s.args("list --limit 5", nil)...)
	if page.code != 0 || strings.Count(page.out, "\n") != 6 || !strings.Contains(page.err, "more with --cursor ") {
		t.Errorf("a page: %+v", page)
	}
	cursor := strings.TrimSpace(strings.TrimPrefix(page.err, "more with --cursor "))
	if next := s.run("", "list --limit 5 --cursor "+cursor); strings.Count(next, "\n") != 6 || next == page.out {
		t.Errorf("the next page: %s", next)
	}
	s.run("", "migrate down --audit --force")
	if got := run(t, "", s.args("audit", nil)...); got.code != 0 || !strings.Contains(got.err, "migrate up --audit") {
		t.Errorf("without a log: %+v", got)
	}
}

// TestHoldCommands hold and release what is parked.
func TestHoldCommands(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	s.emit(7)
	s.run("", "drain"+quiet)
	pgtest.Exec(t, s.pool, `INSERT INTO outbox_parked (subscription, shard, seq, state, gates, attempts, next_attempt_at, id, topic, type, key, payload, created_at)
		SELECT 'default', shard, seq, 'retry', true, 1, now() + interval '1 hour', id, topic, type, key, payload, created_at FROM outbox_stream WHERE key = 'k3'`)
	if got := s.run("", "hold --key k3 --dry-run"); got != "would hold 1 event\n" {
		t.Errorf("a dry run prints %q", got)
	}
	if got := s.run("", "hold --key k3"); got != "held 1 event\n" {
		t.Errorf("hold prints %q", got)
	}
	if got := s.run("", "list --state held"); !strings.Contains(got, "k3") {
		t.Errorf("list prints %s", got)
	}
	if got := s.run("", "drain"+quiet); got != "" {
		t.Errorf("a held event was delivered: %s", got)
	}
	if got := s.run("", "release --key k3"); got != "released 1 event\n" {
		t.Errorf("release prints %q", got)
	}
	if got := delivered(t, s.run("", "drain"+quiet)); len(got) != 1 {
		t.Errorf("after the release %v arrives", got)
	}
	other := "01890000-0000-7000-8000-000000000000"
	if got := run(t, "", s.args("hold", []string{other})...); got.code != 1 || !strings.Contains(got.err, "there is no such event: "+other) {
		t.Errorf("hold of an unknown event: %+v", got)
	}
	if got := run(t, "", s.args("hold", []string{"--key", "k4"})...); got.code != 0 || got.out != "held 0 events\n" || !strings.Contains(got.err, "no matching event is parked") {
		t.Errorf("hold of a key without failures: %+v", got)
	}
	s.refuses("takes the ids of events, or a filter", "hold")
	s.refuses("takes the ids of events, or a filter", "release")
	s.run("", "migrate up --layout modkit")
	s.refuses("has no state for an event that a person holds", "hold --layout modkit --topic x")
}

// TestReplayTable publishes delivered events of a queue table again.
func TestReplayTable(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	s.run("", "migrate up --layout modkit")
	for i := range 3 {
		s.run(fmt.Sprintf(`{"namespace":"shop","topic":"orders","payload":{"order": %d}}`, i), "emit --layout modkit")
	}
	first := s.run("", "drain --layout modkit"+quiet)
	if got := s.run("", "replay --layout modkit --topic orders --dry-run"); got != "would replay 3 events\n" {
		t.Errorf("a dry run prints %q", got)
	}
	again := delivered(t, s.run("", "replay --layout modkit --topic orders --to stdout: --rate 1000/s"))
	if fmt.Sprint(again) != fmt.Sprint(delivered(t, first)) {
		t.Errorf("replayed %v, want what was delivered: %s", again, first)
	}
	file := filepath.Join(t.TempDir(), "again.jsonl")
	if got := s.run("", "replay --layout modkit --topic orders --to file:"+file); got != "replayed 3 events\n" {
		t.Errorf("replay prints %q", got)
	}
	s.refuses("--to is missing", "replay --layout modkit --topic orders")
	s.refuses("leave it out", "replay --topic orders --to stdout:")
}

// TestTopIntoNothing prints once where nobody looks: the null device is no terminal.
func TestTopIntoNothing(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = null.Close() }()
	if code := cli.Run(t.Context(), s.args("top", nil), cli.Streams{In: strings.NewReader(""), Out: null, Err: null}); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestOperationsRefuse(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	s.refuses("are never", "list --state lost")
	s.refuses("choose 1 to 1000", "list --limit 5000")
	s.refuses("does not belong to this list", "list --cursor x")
	s.refuses("is not the id of an event", "list 7")
	s.refuses("takes ID", "show")
	s.refuses("--before is", "retry --all --before soon")
	s.refuses("--audit makes the audit log's tables", "migrate up --audit --shards 4")
	for _, command := range []string{"list", "show 01890000-0000-7000-8000-000000000000", "top", "audit", "retry --all", "hold --key k", "release --key k"} {
		s.refuses("there is no such subscription", command+" --subscription nobody")
		s.refuses("there is no stream", command+" --schema elsewhere")
	}
	if got := run(t, "", s.args("show 01890000-0000-7000-8000-000000000000", nil)...); got.code != 1 || !strings.Contains(got.err, "there is no such event") {
		t.Errorf("an unknown event: %+v", got)
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]string{
		"list --state d":   "dead\ndelivered\n",
		"relay --layout m": "modkit\n",
		"relay --to nat":   "nats:\n",
		"ret":              "retry\t",
	} {
		if got := ok(t, "", append([]string{"__complete"}, strings.Fields(words)...)...); !strings.Contains(got, want) {
			t.Errorf("%s completes to %q", words, got)
		}
	}
	if got := ok(t, "", "completion", "bash"); !strings.Contains(got, "__start_outbox") {
		t.Errorf("completion bash prints %.100q", got)
	}
}

// TestHostileText has events whose texts would clear a terminal, retitle it, or hide what they
// say. Nothing but text is printed.
func TestHostileText(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	const hostile = "\x1b[2J\x1b]0;owned\a\r\u009b31m\u202egnp.exe\u200b\n"
	pgtest.Exec(t, s.pool, `SELECT outbox_emit(p_type => $1, p_topic => $1, p_key => 'k' || $1, p_payload => to_jsonb($1::text),
		p_headers => jsonb_build_object($1::text, $1::text))`, hostile)
	id := strings.Fields(strings.Split(s.run("", "list"), "\n")[1])[0]
	s.kill("k" + hostile)
	pgtest.Exec(t, s.pool, `UPDATE outbox_parked SET last_error = $1`, hostile)
	for _, command := range []string{"list", "list --state dead", "list --dead-groups", "show " + id, "top", "stats"} {
		got := s.run("", command)
		for _, r := range got {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Errorf("%s prints %q", command, got)
				break
			}
		}
	}
}
