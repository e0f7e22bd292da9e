package cli_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/cmd/outbox/internal/cli"
	"github.com/packfinderz/outbox/cmd/outbox/internal/process"
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
