//go:build unix

package chaos

import (
	"os"
	"testing"
	"time"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/internal/testing/process"
	"github.com/packfinderz/outbox/pgstream"
)

// maxLag is longer than any event may take. A relay that dies costs its lease; the rest is for a busy machine. The
// transaction that stays open is open for minutes, in the long form.
const maxLag = 10 * shortLease

// TestStreamOrder is the promise of the stream, kept by real processes in a storm of faults: no event is lost, the events
// of a key arrive first in the order of their commits, only what was in flight arrives twice, and nobody waits for a
// transaction that stays open.
func TestStreamOrder(t *testing.T) {
	t.Parallel()
	events, rounds, think := 30_000, 3, 60*time.Millisecond
	if os.Getenv("OUTBOX_CHAOS") == "long" {
		events, rounds, think = 500_000, 20, 40*time.Millisecond
	}
	// A server of its own: a transaction stays open all the time, and others are prepared.
	server := pgtest.Server(t, nil)
	begun := time.Now()
	r := newRun(t, plan{
		program: process.Build(t), url: server.URL("postgres"), layout: pgstream.LayoutName, count: 3, think: think, steady: true,
		events: events, lease: shortLease, seed: seed(t),
	})
	s := newStorm(r)
	writers, ok := r.producers.load.(*accounts)
	if !ok {
		t.Fatalf("%T does not write to accounts", r.producers.load)
	}
	open := s.bystanders(writers)

	s.blow(rounds, func(round int) {
		if round == rounds/2 {
			s.check(open.prepared.end(t.Context(), true))
			s.check(open.undone.end(t.Context(), false))
		}
	})
	s.await("the writers", r.producers.idle)
	s.check(r.producers.finish())
	s.arrives(s.mailbox, "all but the transaction that is open")
	s.counted["events that did not wait for the open transaction"] = len(r.producers.committed)
	s.check(open.long.end(t.Context(), true))
	s.arrives(s.mailbox, "the transaction that was open throughout")
	s.rest()

	s.counted["transactions with an early xid"] = int(writers.early.Load())
	s.counted["transactions with a savepoint kept"] = int(writers.kept.Load())
	s.counted["transactions with a savepoint undone"] = int(writers.undone.Load())
	s.counted["transactions delayed before their commit"] = int(writers.delayed.Load())
	s.counted["transactions rolled back"] = int(writers.rolled.Load())
	late, err := s.stream.latePages(t.Context())
	s.check(err)
	s.counted["pages of late transactions"] = late
	report := s.finish(s.limits, false)
	s.summary(report, time.Since(begun))
	if report.MaxLag > maxLag {
		t.Errorf("an event took %s to arrive; a takeover explains some seconds", report.MaxLag)
	}
}
