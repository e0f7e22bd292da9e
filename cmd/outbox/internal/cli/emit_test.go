package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

// modkit is a database with the ModKit table, and the flags that name it.
func modkit(t *testing.T) (source []string, count func() int) {
	t.Helper()
	url := pgtest.URL(t)
	pool := connect(t, url)
	source = []string{"--from", url, "--layout", "modkit"}
	ok(t, "", append([]string{"migrate", "up"}, source...)...)
	return source, func() (n int) {
		t.Helper()
		if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM modkit_outbox_events`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
}

// TestLayoutOfEnvironment names the layout once, for every command.
func TestLayoutOfEnvironment(t *testing.T) {
	url := pgtest.URL(t)
	t.Setenv("OUTBOX_LAYOUT", "modkit")
	ok(t, "", "migrate", "up", "--from", url)
	ok(t, "", "emit", "--from", url, "--namespace", "shop", "--topic", "orders", "--payload", "{}")
	if got := ok(t, "", "stats", "--from", url); !strings.Contains(got, "layout                        modkit\n") {
		t.Errorf("stats: %s", got)
	}
}

func TestEmitOne(t *testing.T) {
	t.Parallel()
	source, count := modkit(t)
	emit := append([]string{"emit", "--namespace", "shop", "--topic", "orders"}, source...)
	if got := ok(t, "", append(emit, "--payload", `{"order":1}`)...); !strings.HasPrefix(got, "emitted 0") {
		t.Errorf("got %q", got)
	}
	keyed := slices.Concat(emit, []string{"--payload", `{"order":2}`, "--dedupe-key", "2"})
	first := ok(t, "", append(keyed, "--json")...)
	second := ok(t, "", append(keyed, "--json")...)
	if want := strings.Replace(first, "false", "true", 1); second != want {
		t.Errorf("got %q, want %q", second, want)
	}
	if got := ok(t, "", keyed...); !strings.HasPrefix(got, "already enqueued as ") {
		t.Errorf("got %q", got)
	}
	file := filepath.Join(t.TempDir(), "payload.json")
	if err := os.WriteFile(file, []byte(`{"order":3}`), 0o600); err != nil {
		t.Fatal(err)
	}
	ok(t, "", append(emit, "--payload", "@"+file, "--not-before", "2030-01-31T12:00:00+02:00")...)
	if got := count(); got != 3 {
		t.Errorf("the table has %d rows, want 3", got)
	}
	refused(t, "headers is set, but layout modkit has no column", "", append(emit, "--payload", "{}", "--header", "a=b")...)
	refused(t, "not valid JSON", "", append(emit, "--payload", "no")...)
	refused(t, "there is no table", "", append(emit, "--payload", "{}", "--table", "elsewhere")...)
	refused(t, "there is no table", "", append(emit, "--payload", "{}", "--schema", "elsewhere")...)
	if got := count(); got != 3 {
		t.Errorf("the table has %d rows, want 3", got)
	}
}

func TestEmitLines(t *testing.T) {
	t.Parallel()
	source, count := modkit(t)
	emit := append([]string{"emit"}, source...)
	var lines strings.Builder
	for i := range 2345 {
		fmt.Fprintf(&lines, `{"namespace":"shop","topic":"orders","dedupeKey":"%d","payload":{"order":%d}}`+"\n\n", i%2000, i)
	}
	if got := ok(t, lines.String(), emit...); got != "emitted 2000, already enqueued 345\n" {
		t.Errorf("got %q", got)
	}
	if got := ok(t, "", emit...); got != "emitted 0, already enqueued 0\n" {
		t.Errorf("no input: got %q", got)
	}
	// One bad line, wherever it is, and nothing is written.
	good := `{"namespace":"shop","topic":"orders","payload":{}}` + "\n"
	for bad, words := range map[string]string{
		`{"namespace":"shop","payload":{}}`:                                     "topic is empty",
		`{"namespace":"shop","topic":"orders"}`:                                 "payload is nil",
		`{"namespace":"shop","topic":"orders","payload":"\u0000"}`:              "U+0000",
		`{"namespace":"shop","topic":"orders","payload":{},"colour":"red"}`:     "unknown field",
		`{"namespace":"shop","topic":"orders","payload":{},"id":"7"}`:           "not a UUID",
		`{"namespace":"shop","topic":"orders","payload":{},"tenantId":"7"}`:     "not a UUID",
		`{"namespace":"shop","topic":"orders","payload":{}} {}`:                 "line of its own",
		`{"namespace":"shop","topic":"orders","payload":{},"payloadBase64":""}`: "give one",
		`{"namespace":`: "not an event",
		`[]`:            "not an event",
	} {
		refused(t, fmt.Sprintf("line %d: ", 1502), strings.Repeat(good, 1500)+"\n"+bad+"\n"+good, emit...)
		refused(t, words, good+bad, emit...)
	}
	if got := count(); got != 2000 {
		t.Errorf("the table has %d rows, want 2000", got)
	}
	// Defaults, and every field there is.
	all := `{"id":"01890000-0000-7000-8000-000000000000","tenantId":"01890000-0000-7000-8000-00000000000a",` +
		`"dedupeKey":"01890000-0000-7000-8000-00000000000a/1","notBefore":"2030-01-01T00:00:00Z","payload":[1,2]}`
	ok(t, all, append(emit, "--namespace-default", "n", "--topic-default", "t")...)
	if got := count(); got != 2001 {
		t.Errorf("the table has %d rows, want 2001", got)
	}
}

// TestCustomLayoutFile goes the way of a team with a table of its own: print a layout,
// edit it, use it.
func TestCustomLayoutFile(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	pool := connect(t, url)
	pgtest.Exec(t, pool, `
		CREATE TABLE our_events (
			event_id uuid PRIMARY KEY, namespace text, topic text, tenant_id uuid, dedupe_key text, body jsonb,
			status text, attempts int, next_attempt_at timestamptz, locked_by uuid, locked_until timestamptz,
			last_error text, created_at timestamptz, updated_at timestamptz)`)
	doc := ok(t, "", "layouts", "modkit")
	for old, mine := range map[string]string{
		"name: modkit": "name: ours", "table: modkit_outbox_events": "table: our_events",
		"id: id": "id: event_id", "payload: payload": "payload: body",
	} {
		doc = strings.Replace(doc, old, mine, 1)
	}
	file := filepath.Join(t.TempDir(), "ours.yaml")
	if err := os.WriteFile(file, []byte(doc), 0o600); err != nil {
		t.Fatal(err)
	}
	ok(t, `{"namespace":"a","topic":"b","payload":{"x":1}}`, "emit", "--from", url, "--layout", file)
	var body string
	if err := pool.QueryRow(t.Context(), `SELECT body FROM our_events`).Scan(&body); err != nil || body != `{"x": 1}` {
		t.Errorf("got %q, %v", body, err)
	}
	refused(t, "has no migrations", "", "migrate", "up", "--from", url, "--layout", file)
	if got := ok(t, "", "layouts", "--json"); strings.Count(got, "\n") != 4 {
		t.Errorf("layouts --json: %s", got)
	}
	if got := ok(t, "", "layouts", "doorito", "--json"); !strings.HasPrefix(got, `{"name":"doorito"`) {
		t.Errorf("layouts doorito --json: %s", got)
	}
}

// TestDedupeKeyInMessages is what docs/relay.md and docs/destinations.md say of messages: only the layouts that keep
// the key in their rows carry it.
func TestDedupeKeyInMessages(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	for layout, want := range map[string]string{"standard": "", "modkit": "k", "doorito": "k"} {
		s.run("", "migrate up --layout "+layout)
		event := `{"type":"file.stored","aggregateType":"UploadFile","aggregateId":"42","dedupeKey":"k","payload":{}}`
		if layout != "doorito" {
			event = strings.Replace(event, `"type"`, `"namespace":"n","topic":"t","type"`, 1)
		}
		if layout == "modkit" {
			event = `{"namespace":"n","topic":"t","dedupeKey":"k","payload":{}}`
		}
		s.run(event, "emit --layout "+layout)
		out := s.run("", "drain --topic-default t --layout "+layout+quiet)
		if !strings.Contains(out, `"dedupeKey":"`+want+`"`) {
			t.Errorf("a message of layout %s: %s", layout, out)
		}
	}
}
