//go:build unix

package chaos

import (
	"testing"

	"github.com/packfinderz/outbox/cmd/outbox/internal/process"
	"github.com/packfinderz/outbox/internal/pgtest"
	"github.com/packfinderz/outbox/pgstream"
)

// exitUsage is the exit code of a program that was asked for something it cannot do.
const exitUsage = 2

// TestRestore moves a stream to another server with pg_dump, half of it delivered. Relays refuse to go on there; after a
// repair they deliver the other half: nothing is lost, nothing comes twice, and every key goes on where it was.
func TestRestore(t *testing.T) {
	t.Parallel()
	const half = 2000
	r := newRun(t, plan{
		program: process.Build(t), url: pgtest.URL(t), layout: pgstream.LayoutName, count: 1, events: half,
		lease: shortLease, seed: seed(t),
	})
	relay := r.relays[0]
	r.await("the first half", func() bool { return r.producers.idle() && r.undelivered() == 0 })
	r.terminate(relay)
	r.producers.ask(half)
	r.check(r.producers.finish())
	unread := r.undelivered()
	if unread < half {
		t.Fatalf("%d events are unread, want %d", unread, half)
	}

	r.url = pgtest.Restore(t, r.url)
	r.spawn(relay, "relay")
	if code := relay.Wait(t); code != exitUsage || !relay.Logs("outbox repair") {
		t.Fatalf("exit code %d of a relay on a restored stream, without the hint\n%s", code, relay.Tail())
	}
	r.command("repair").MustSucceed(t)
	r.start(relay)
	if mailbox, ok := r.inbox.(*mailbox); ok {
		r.arrives(mailbox, "the other half")
	}
	r.terminate(relay)
	report := r.judge(r.inbox, Limits{})
	t.Logf("%d events, %d of them after the repair: lost %d, twice %d, inverted %d",
		report.Events, unread, len(report.Lost), report.Twice, len(report.Inversions))
}
