//go:build unix

package cli_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/internal/testing/process"
	"github.com/packfinderz/outbox/outboxtest/await"
)

// TestRetryInterrupted stops the program in the middle of a retry of many events. Whole
// batches are done, the log says how many, and the command that it names does the rest.
func TestRetryInterrupted(t *testing.T) {
	t.Parallel()
	s := newOrders(t)
	const events, batch = 20_000, 500
	s.deadOrders(events)
	log := filepath.Join(t.TempDir(), "retry.log")
	const command = "retry --layout modkit --topic orders --batch-size 500"
	retry := process.Start(t, log, nil, process.Build(t), s.args(command, nil)...)
	await.Until(t, "some batches", func() bool {
		return retry.Ended() || s.count("modkit_outbox_events WHERE status = 'pending'") > 3*batch
	})
	retry.Signal(t, syscall.SIGINT)
	if code := retry.Wait(t); code != 1 {
		t.Fatalf("exit code %d\n%s", code, retry.Tail())
	}
	done := s.count("modkit_outbox_events WHERE status = 'pending'")
	if done%batch != 0 || done == 0 || done == events || !retry.Logs(fmt.Sprintf("interrupted after %d events; to go on", done)) {
		t.Fatalf("%d events are retried\n%s", done, retry.Tail())
	}
	if n := s.count(fmt.Sprintf("outbox_audit WHERE events = %d AND outcome = 'interrupted'", done)); n != 1 {
		t.Errorf("the audit log does not say so:\n%s", s.run("", "audit --layout modkit"))
	}
	_, before, _ := strings.Cut(retry.Tail(), "--before ")
	if got := s.run("", command+" --before "+strings.Fields(before)[0]); got != fmt.Sprintf("retrying %d events\n", events-done) {
		t.Errorf("the rest: %q", got)
	}
}

// newOrders is a database with a table of layout modkit, and an audit log.
func newOrders(t *testing.T) *standard {
	t.Helper()
	s := newStandard(t)
	s.run("", "migrate up --layout modkit")
	s.run("", "migrate up --audit --layout modkit")
	return s
}

// deadOrders writes dead events into the table.
func (s *standard) deadOrders(n int) {
	s.Helper()
	pgtest.Exec(s.T, s.pool, `INSERT INTO modkit_outbox_events (id, namespace, topic, payload, status, attempts, next_attempt_at, updated_at)
		SELECT gen_random_uuid(), 'shop', 'orders', '{}', 'dead', 10, now() - i * interval '1 ms', now() - interval '1 hour' FROM generate_series(1, $1::int) AS i`, n)
}
