//go:build unix

package chaos

import (
	"strconv"
	"testing"
	"time"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/internal/testing/process"
	"github.com/packfinderz/outbox/pgstream"
)

const (
	// slots is how many slots of a second the ring has.
	slots = 4
	// emitPatience is how long an emit may wait for a lock. A rotation in front of it waits 100 ms, and empties the slot in
	// a moment; one that waited for the dump would stand there until the dump ends, which waits for emits.
	emitPatience = 20 * time.Second
)

// TestRotation empties slots under load, with pg_dump in the way and a subscription that lags behind the whole ring:
// emits do not wait for it, and whoever has not read an event gets it, in order.
func TestRotation(t *testing.T) {
	t.Parallel()
	r := &ring{run: newRun(t, plan{
		program: process.Build(t), url: pgtest.URL(t), layout: pgstream.LayoutName, migrate: []string{"--slots", strconv.Itoa(slots), "--slot-length", "1s"},
		count: 2, think: 100 * time.Millisecond, steady: true, lease: longLease, seed: seed(t),
	})}
	r.stream = &stream{pool: r.pool}
	writers, ok := r.producers.load.(*accounts)
	if !ok {
		t.Fatalf("%T does not write to accounts", r.producers.load)
	}
	writers.lockTimeout.Store(emitPatience.Milliseconds())
	r.command("subscriptions", "create", "lagging").MustSucceed(t)

	// Nobody reads for the second subscription: every slot stays as it is, however often its turn comes.
	r.turns(slots + 1)
	r.startDump()
	r.await("pg_dump to have its locks", func() bool {
		r.live()
		return r.number(`
			SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)
			WHERE application_name = 'pg_dump' AND granted AND relation = 'outbox_stream_0'::regclass`) > 0
	})
	r.turns(2)
	r.await("the program to warn that a subscription lags", func() bool {
		r.live()
		return r.lagged
	})
	r.dump.stands(r.run)
	if committed, rows := r.producers.done(), r.rows(); rows < committed {
		t.Fatalf("%d events are there, of %d that a subscription has not read", rows, committed)
	}
	r.endDump()

	// It catches up, and slots are emptied, between one dump and the next.
	late := &relay{name: "late", flags: []string{"--subscription", "lagging"}, inbox: newMailbox(t)}
	r.start(late)
	emptied, most := 0, r.rows()
	r.await("slots to be emptied", func() bool {
		r.live()
		rows := r.rows()
		if rows < most {
			emptied++
		}
		most = rows
		return emptied >= slots
	})
	r.startDump()
	waits := r.rotationWaits
	r.await("a rotation to wait for a dump", func() bool {
		r.live()
		return r.rotationWaits > waits
	})
	r.endDump()
	r.endPurge()
	r.settle(late)

	t.Logf("%d events, %d purges, slots emptied %d times, %d dumps, %d looks saw a rotation wait and %d an emit; the slowest emit took %s",
		len(r.producers.committed), r.purges, emptied, r.dumps, r.rotationWaits, r.emitWaits, time.Duration(writers.slowest.Load()).Round(time.Millisecond))
}

// settle ends the load, waits until everybody has everything, and judges what arrived.
func (r *ring) settle(late *relay) {
	r.Helper()
	r.check(r.producers.finish())
	for _, inbox := range []inbox{r.inbox, late.inbox} {
		if mailbox, ok := inbox.(*mailbox); ok {
			r.arrives(mailbox, "the run")
		}
	}
	for _, relay := range append(r.relays, late) {
		r.terminate(relay)
	}
	for _, inbox := range []inbox{r.inbox, late.inbox} {
		r.judge(inbox, Limits{})
	}
}
