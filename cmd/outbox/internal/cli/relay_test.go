package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/packfinderz/outbox/cmd/outbox/internal/cli"
	"github.com/packfinderz/outbox/destinations/natsjs/natstest"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/logtest"
)

func TestDrain(t *testing.T) {
	t.Parallel()
	source, _ := modkit(t)
	var lines strings.Builder
	for i := range 50 {
		fmt.Fprintf(&lines, `{"namespace":"shop","topic":"orders","dedupeKey":"%d","payload":{"order": %d}}`+"\n", i, i)
	}
	ok(t, lines.String(), slices.Concat([]string{"emit"}, source)...)
	// Only what the filter names.
	ok(t, `{"namespace":"other","topic":"orders","payload":{}}`, slices.Concat([]string{"emit"}, source)...)
	out := ok(t, "", slices.Concat([]string{"drain", "--to", "stdout:", "--namespace", "shop", "--log-level", "error"}, source)...)
	scanner := bufio.NewScanner(strings.NewReader(out))
	n := 0
	for scanner.Scan() {
		var line struct {
			Namespace string          `json:"namespace"`
			DedupeKey string          `json:"dedupeKey"`
			Attempt   int             `json:"attempt"`
			Payload   json.RawMessage `json:"payload"`
		}
		if err := json.Unmarshal(scanner.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if line.Namespace != "shop" || line.DedupeKey != fmt.Sprint(n) || line.Attempt != 1 ||
			string(line.Payload) != fmt.Sprintf(`{"order": %d}`, n) {
			t.Errorf("line %d is %s", n, scanner.Bytes())
		}
		n++
	}
	if n != 50 {
		t.Errorf("%d lines, want 50", n)
	}
	file := filepath.Join(t.TempDir(), "events.jsonl")
	ok(t, "", slices.Concat([]string{"drain", "--to", "file:" + file, "--topic", "orders", "--topic", "more"}, source)...)
	if content, err := os.ReadFile(file); err != nil || strings.Count(string(content), "\n") != 1 {
		t.Errorf("the file has %q (%v)", content, err)
	}
}

// TestWarnings has a destination that says how much its acknowledgements are worth.
func TestWarnings(t *testing.T) {
	t.Parallel()
	source, _ := modkit(t)
	broker := natstest.New(t)
	for option, want := range map[string]int{"": 1, "?sync-always=true": 0} {
		got := run(t, "", slices.Concat([]string{"drain", "--to", broker.URL() + option}, source)...)
		if got.code != 0 || strings.Count(got.err, "sync_interval: always") != want {
			t.Errorf("exit code %d, %q; want %d warnings", got.code, got.err, want)
		}
	}
}

// TestRelayAnswers runs a relay with health, readiness and metrics, and stops it.
func TestRelayAnswers(t *testing.T) {
	t.Parallel()
	t.Run("modkit", func(t *testing.T) {
		t.Parallel()
		source, count := modkit(t)
		relayAnswers(t, source, `{"namespace":"shop","topic":"orders","payload":{}}`, count)
	})
	t.Run("standard", func(t *testing.T) {
		t.Parallel()
		s := newStandard(t)
		relayAnswers(t, []string{"--from", s.url}, `{"type":"placed","topic":"orders","payload":{}}`,
			func() int { return s.count("outbox_stream") })
		if got := s.count("outbox_relays") + s.count("outbox_shards WHERE owner IS NOT NULL"); got != 0 {
			t.Errorf("a relay that has stopped is still listed, or has shards")
		}
	})
}

func relayAnswers(t *testing.T, source []string, event string, count func() int) {
	t.Helper()
	var out bytes.Buffer
	logs, logWriter := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan int, 1)
	args := slices.Concat([]string{"relay", "--to", "discard:", "--listen", "127.0.0.1:0", "--log-format", "json"}, source)
	go func() {
		done <- cli.Run(ctx, args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: logWriter})
		_ = logWriter.Close()
	}()
	address := ""
	scanner := bufio.NewScanner(logs)
	for address == "" && scanner.Scan() {
		if found := regexp.MustCompile(`"address":"([^"]+)"`).FindStringSubmatch(scanner.Text()); found != nil {
			address = found[1]
		}
	}
	rest, copied := &logtest.Log{}, make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(rest, logs) // it ends with the relay
	}()
	get := func(path string) (int, string) {
		t.Helper()
		return fetch(t, "http://"+address+path, "")
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if code, body := get(path); code != http.StatusOK {
			t.Errorf("%s answers %d: %s", path, code, body)
		}
	}
	ok(t, strings.Repeat(event+"\n", 20), slices.Concat([]string{"emit"}, source)...)
	deadline := time.Now().Add(30 * time.Second)
	for {
		_, body := get("/metrics")
		if strings.Contains(body, "\noutbox_published_total 20\n") {
			for _, name := range []string{
				"outbox_failed_total 0", "outbox_dead_total 0", "outbox_lease_lost_total 0", "outbox_closed_routes 0", "outbox_backlog_events ",
				"outbox_oldest_undelivered_seconds ", "outbox_max_attempts_events 0", "outbox_batches_total ", "outbox_publish_seconds_total ",
			} {
				if !strings.Contains(body, "\n"+name) {
					t.Errorf("the metrics lack %s", name)
				}
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the events were not published:\n%s", body)
		}
	}
	stop()
	if code := <-done; code != 0 {
		t.Errorf("a relay that was told to stop exits with %d", code)
	}
	<-copied
	if line := rest.Line("relay started"); !strings.Contains(line, `"poll":"1s"`) {
		t.Errorf("a duration in the log is not as people write it: %s", line)
	}
	if got := count(); got != 20 {
		t.Errorf("the table has %d rows", got)
	}
}

// TestWrongSetting has a destination that lacks the topic that events go to. The program says so and exits
// with 2; told to wait, it waits.
func TestWrongSetting(t *testing.T) {
	t.Parallel()
	source, _ := modkit(t)
	args := slices.Concat([]string{"relay", "--to", natstest.New(t).URL(), "--topic-default", "nowhere"}, source)
	refused(t, "correct it, or wait for it with --wait", "", append(args, "--log-level", "error")...)
	log := &logtest.Log{}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan int, 1)
	go func() {
		done <- cli.Run(ctx, append(args, "--wait"), cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: log})
	}()
	await.Until(t, "the relay to run, or to exit", func() bool { return log.Count("relay started") > 0 || len(done) > 0 })
	stop()
	if code := <-done; code != 0 || log.Count("waiting for it") != 1 {
		t.Errorf("with --wait: exit code %d, %s", code, log.Text())
	}
}

// TestMissingFolder has a file in a folder that is not there. The program says so and exits with 2; told to wait, it delivers when
// somebody has made the folder.
func TestMissingFolder(t *testing.T) {
	t.Parallel()
	source, _ := modkit(t)
	ok(t, `{"namespace":"shop","topic":"orders","payload":{}}`+"\n", slices.Concat([]string{"emit"}, source)...)
	folder := filepath.Join(t.TempDir(), "folder")
	args := slices.Concat([]string{"relay", "--to", "file:" + filepath.Join(folder, "events.jsonl")}, source)
	refused(t, "correct it, or wait for it with --wait", "", append(args, "--log-level", "error")...)
	log := &logtest.Log{}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan int, 1)
	go func() {
		done <- cli.Run(ctx, append(args, "--wait"), cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: log})
	}()
	await.Until(t, "the relay to wait, or to exit", func() bool { return log.Count("waiting for it") > 0 || len(done) > 0 })
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the event in the file, or the relay to exit", func() bool {
		content, err := os.ReadFile(filepath.Join(folder, "events.jsonl"))
		return err == nil && bytes.HasSuffix(content, []byte("\n")) || len(done) > 0
	})
	stop()
	if code := <-done; code != 0 {
		t.Errorf("exit code %d: %s", code, log.Text())
	}
}

func TestRelayRefuses(t *testing.T) {
	t.Parallel()
	source, count := modkit(t)
	refuses := func(words string, args ...string) {
		t.Helper()
		refused(t, words, "", slices.Concat([]string{"relay"}, source, args)...)
	}
	refuses("--to is missing")
	refuses("no scheme", "--to", "nowhere")
	refuses("there is no destination pigeon:", "--to", "pigeon://localhost")
	refuses("a third of the lease", "--to", "discard:", "--lease", "2s", "--poll", "1s")
	refuses("between 100ms and 24h", "--to", "discard:", "--lease", "1ms")
	refuses("below the first", "--to", "discard:", "--base-delay", "1h", "--max-delay", "1s")
	refuses("--batch-size is -1", "--to", "discard:", "--batch-size", "-1")
	refuses("--batch-size is 0", "--to", "discard:", "--batch-size", "0")
	refuses("it must be from 1 to 100000", "--to", "discard:", "--batch-size", "100000000")
	refuses("--max-attempts is 0", "--to", "discard:", "--max-attempts", "0")
	refuses("--concurrency is 0", "--to", "discard:", "--concurrency", "0")
	refuses("--lease is 0s", "--to", "discard:", "--lease", "0")
	refuses("--retention is -1h", "--to", "discard:", "--retention", "-1h")
	refuses("--publish-timeout is 0s", "--to", "discard:", "--publish-timeout", "0")
	refuses("must be at least 1", "--to", "discard:", "--max-attempts", "-1")
	refuses("not a UUID", "--to", "discard:", "--tenant", "x")
	refuses("--log-level", "--to", "discard:", "--log-level", "loud")
	refuses("--log-format", "--to", "discard:", "--log-format", "xml")
	refuses("make the table with outbox migrate up --layout modkit", "--to", "discard:", "--table", "elsewhere")
	refuses("no dead-letter table", "--to", "discard:", "--dlq-retention", "1h")
	refuses("listen on", "--to", "discard:", "--listen", "256.0.0.1:1")
	refuses("cannot reach the database", "--to", "discard:", "--from", "postgres://u:hunter2@127.0.0.1:1/x")
	pool := connect(t, source[1])
	pgtest.Exec(t, pool, `ALTER TABLE modkit_outbox_events RENAME COLUMN last_error TO oops`)
	refuses(`has no column "last_error"`, "--to", "discard:")
	if got := count(); got != 0 {
		t.Errorf("something was written: %d rows", got)
	}
	url := pgtest.URL(t)
	ok(t, "", "migrate", "up", "--from", url, "--layout", "doorito")
	refused(t, "cannot be filtered", "", "relay", "--from", url, "--layout", "doorito", "--to", "discard:", "--namespace", "x")
}

func TestPurge(t *testing.T) {
	t.Parallel()
	source, count := modkit(t)
	pool := connect(t, source[1])
	ok(t, strings.Repeat(`{"namespace":"shop","topic":"orders","payload":{}}`+"\n", 30), slices.Concat([]string{"emit"}, source)...)
	ok(t, "", slices.Concat([]string{"drain", "--to", "discard:"}, source)...)
	purge := slices.Concat([]string{"purge"}, source)
	if got := ok(t, "", purge...); got != "deleted 0 events\n" {
		t.Errorf("fresh events: %q", got)
	}
	pgtest.Exec(t, pool, `UPDATE modkit_outbox_events SET created_at = created_at - interval '31 days', updated_at = updated_at - interval '31 days',
		next_attempt_at = next_attempt_at - interval '31 days' WHERE ctid IN (SELECT ctid FROM modkit_outbox_events LIMIT 10)`)
	if got := ok(t, "", slices.Concat(purge, []string{"--dry-run", "--json"})...); got != `{"dryRun":true,"events":10}`+"\n" {
		t.Errorf("a dry run: %q", got)
	}
	if got := ok(t, "", slices.Concat(purge, []string{"--batch-size", "3"})...); got != "deleted 10 events\n" || count() != 20 {
		t.Errorf("%q, %d rows left", got, count())
	}
	refused(t, "must be positive", "", slices.Concat(purge, []string{"--retention", "0"})...)
	refused(t, "at least 1", "", slices.Concat(purge, []string{"--batch-size", "0"})...)
}

// TestEnvironment sets flags by their variables.
func TestEnvironment(t *testing.T) {
	source, _ := modkit(t)
	t.Setenv("OUTBOX_TO", "stdout:")
	t.Setenv("OUTBOX_BATCH_SIZE", "many")
	refused(t, "OUTBOX_BATCH_SIZE", "", slices.Concat([]string{"drain"}, source)...)
	t.Setenv("OUTBOX_BATCH_SIZE", "7")
	t.Setenv("OUTBOX_LAYOUT", "modkit")
	t.Setenv("OUTBOX_DATABASE_URL", source[1])
	ok(t, `{"namespace":"a","topic":"b","payload":{}}`, slices.Concat([]string{"emit"}, source)...)
	if got := ok(t, "", "drain"); strings.Count(got, "\n") != 1 {
		t.Errorf("drain printed %q", got)
	}
	t.Setenv("OUTBOX_TOPIC", "eu,orders\nc\n") // a list has a line for each value
	ok(t, `{"namespace":"a","topic":"eu,orders","payload":{}}
{"namespace":"a","topic":"c","payload":{}}
{"namespace":"a","topic":"b","payload":{}}`, slices.Concat([]string{"emit"}, source)...)
	if got := ok(t, "", "drain"); strings.Count(got, "\n") != 2 {
		t.Errorf("drain of two topics printed %q", got)
	}
}
