package cli_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/cmd/outbox/internal/cli"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/internal/testing/process"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/logtest"
)

// TestDrainEndsEarly has a destination that stays closed: the drain ends when its time is over, or when it is told to, and says what is left
// and why.
func TestDrainEndsEarly(t *testing.T) {
	t.Parallel()
	source, _ := modkit(t)
	ok(t, `{"namespace":"shop","topic":"orders","payload":{}}`+"\n", slices.Concat([]string{"emit"}, source)...)
	drain := slices.Concat([]string{"drain", "--wait", "--to", "file:" + filepath.Join(t.TempDir(), "missing", "events.jsonl")}, source)
	got := run(t, "", append(drain, "--timeout", "1s")...)
	const left = ": 1 event left; destination is closed: open the destination"
	if got.code != 1 || !strings.Contains(got.err, "outbox: the time is over"+left) {
		t.Errorf("exit code %d: %s", got.code, got.err)
	}
	log := &logtest.Log{}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan int, 1)
	go func() { done <- cli.Run(ctx, drain, cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: log}) }()
	await.Until(t, "the drain to wait, or to exit", func() bool { return log.Count("the route is closed") > 0 || len(done) > 0 })
	stop()
	if code := <-done; code != 1 || !strings.Contains(log.Text(), "outbox: interrupted"+left) {
		t.Errorf("exit code %d: %s", code, log.Text())
	}
	refused(t, "--timeout is negative", "", append(drain, "--timeout", "-1s")...)
}

// TestDrainWithoutEvents ends well though the destination is closed: nobody needs it.
func TestDrainWithoutEvents(t *testing.T) {
	t.Parallel()
	closed := []string{"drain", "--wait", "--to", "file:" + filepath.Join(t.TempDir(), "missing", "events.jsonl")}
	source, _ := modkit(t)
	stream := newStandard(t)
	for layout, args := range map[string][]string{"modkit": slices.Concat(closed, source), "standard": stream.args("drain", closed[1:])} {
		if got := ok(t, "", args...); got != "delivered 0 events; left: nothing\n" {
			t.Errorf("%s: drain prints %q", layout, got)
		}
	}
}

// TestDrainSaysWhatIsLeft ends well while events are left that no relay can deliver now, and says so.
func TestDrainSaysWhatIsLeft(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	s.emit(9) // two of k0 and of k1
	if got := s.run("", "drain --to discard:"); got != "delivered 9 events; left: nothing\n" {
		t.Errorf("drain prints %q", got)
	}
	s.run("", "subscriptions alter default --on-dead block")
	pgtest.Exec(t, s.pool, `INSERT INTO outbox_parked (subscription, shard, seq, state, gates, attempts, next_attempt_at, id, topic, type, key, payload, created_at)
		SELECT 'default', shard, seq, CASE WHEN key <> 'k0' THEN 'held' WHEN n = 1 THEN 'dead' ELSE 'waiting' END, true, 1, now(), id, topic, type, key, payload, created_at
		FROM (SELECT *, row_number() OVER (PARTITION BY key ORDER BY seq) AS n FROM outbox_stream) AS e WHERE key = 'k0' OR key = 'k3'`)
	s.run("", "emit --topic orders --type placed --payload {} --not-before 2100-01-01T00:00:00Z")
	if got := s.run("", "drain --to discard:"); got != "delivered 0 events; left: 1 dead, 1 held, 1 waiting, 1 scheduled\n" {
		t.Errorf("drain prints %q", got)
	}
	if got := s.run("", "drain --to discard: --json"); got != `{"delivered":0,"left":{"dead":1,"held":1,"scheduled":1,"waiting":1}}`+"\n" {
		t.Errorf("drain --json prints %q", got)
	}
	s.emit(1)
	// Nothing comes between the events.
	got := run(t, "", s.args("drain", []string{"--to", "stdout:", "--log-level", "error"})...)
	if len(delivered(t, got.out)) != 0 || !strings.Contains(got.err, "delivered 0 events; left: 1 dead, 1 held, 2 waiting, 1 scheduled\n") {
		t.Errorf("drain to standard output prints %q, and %q", got.out, got.err)
	}

	source, _ := modkit(t)
	ok(t, strings.Repeat(`{"namespace":"shop","topic":"orders","payload":{}}`+"\n", 3), slices.Concat([]string{"emit"}, source)...)
	pgtest.Exec(t, connect(t, source[1]), `UPDATE modkit_outbox_events SET status = 'dead' WHERE ctid IN (SELECT ctid FROM modkit_outbox_events LIMIT 1)`)
	if got := ok(t, "", slices.Concat([]string{"drain", "--to", "discard:"}, source)...); got != "delivered 2 events; left: 1 dead\n" {
		t.Errorf("drain of a table prints %q", got)
	}
}

// TestNoReader closes standard output: the relay says so and ends, and another can take its shards at once.
func TestNoReader(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	relay := process.Start(t, filepath.Join(t.TempDir(), "log"), writer, process.Build(t), s.args("relay --to stdout:", nil)...)
	if err := writer.Close(); err != nil { // the process has its own
		t.Fatal(err)
	}
	relay.AwaitLog(t, "relay started")
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	s.emit(1)
	if code := relay.Wait(t); code != 1 || !relay.Logs("outbox: standard output was closed") {
		t.Errorf("exit code %d: %s", code, relay.Tail())
	}
	if n := s.count(`outbox_shards WHERE owner IS NOT NULL`); n != 0 {
		t.Errorf("%d shards are still the relay's", n)
	}
}

// TestDrainTellsOfStrays ends with an error while there are rows that no relay will ever take.
func TestDrainTellsOfStrays(t *testing.T) {
	t.Parallel()
	source, _ := modkit(t)
	pool := connect(t, source[1])
	ok(t, strings.Repeat(`{"namespace":"shop","topic":"orders","payload":{}}`+"\n", 2), slices.Concat([]string{"emit"}, source)...)
	pgtest.Exec(t, pool, `UPDATE modkit_outbox_events SET status = 'archived' WHERE id = (SELECT min(id::text)::uuid FROM modkit_outbox_events)`)
	drain := slices.Concat([]string{"drain", "--to", "discard:"}, source)
	got := run(t, "", drain...)
	if got.code != 1 || got.out != "delivered 1 event; left: 1 in no known state\n" || !strings.Contains(got.err, "left for ever: 1 row in no state that a relay knows") {
		t.Errorf("exit code %d: %s%s", got.code, got.out, got.err)
	}
	if got := ok(t, "", slices.Concat([]string{"stats"}, source)...); !regexp.MustCompile(`in no known state +1\n`).MatchString(got) {
		t.Errorf("stats prints %s", got)
	}
	if got := ok(t, "", slices.Concat([]string{"stats", "--json"}, source)...); !strings.Contains(got, `"strays":1`) {
		t.Errorf("stats prints %s", got)
	}
	pgtest.Exec(t, pool, `UPDATE modkit_outbox_events SET status = 'pending' WHERE status = 'archived'`)
	ok(t, "", drain...)
}
