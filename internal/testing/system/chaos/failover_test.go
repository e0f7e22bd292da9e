//go:build unix

package chaos

import (
	"os"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/internal/testing/process"
	"github.com/packfinderz/outbox/pgstream"
)

// TestFailover crashes the primary of a stream under load, again and again, and promotes the synchronous and the
// asynchronous standby in turn. Nothing is lost of what the new primary has, and every key keeps its order. What was
// delivered and is not there is due to an asynchronous standby, and relays say that there is such.
func TestFailover(t *testing.T) {
	t.Parallel()
	events, promotions := 4000, 2
	if os.Getenv("OUTBOX_CHAOS") == "long" {
		events, promotions = 40_000, 20
	}
	servers := newTrio(t)
	r := newRun(t, plan{
		program: process.Build(t), url: servers.address(), address: servers.address, layout: pgstream.LayoutName, count: 2,
		events: events, faults: promotions, lease: shortLease, seed: seed(t),
	})
	f := &failover{run: r, servers: servers, orphaning: make(map[int]bool)}
	// Every promotion counts: which standby it is goes by its number.
	for number := 1; number <= promotions; number++ {
		f.faulted++
		if f.promote(number) {
			f.met++
		}
	}
	if f.met < promotions/2 {
		t.Errorf("only %d of %d promotions met relays at work", f.met, promotions)
	}
	mailbox, ok := r.inbox.(*mailbox)
	if !ok {
		t.Fatalf("%T is no mailbox", r.inbox)
	}
	f.check(r.producers.finish())
	f.arrives(mailbox, "what the last primary has")
	for _, relay := range r.relays {
		f.terminate(relay)
	}

	there := f.there()
	arrived, spoiled, err := mailbox.deliveries()
	f.check(err)
	orphans := make(map[uuid.UUID]bool)
	history := History{Committed: r.producers.committed, Spoiled: spoiled}
	for _, delivery := range arrived {
		switch {
		case there[delivery.ID]:
			history.Deliveries = append(history.Deliveries, delivery)
		case f.orphaning[delivery.By.Fault]:
			orphans[delivery.ID] = true
		default:
			t.Errorf("%s was delivered by %s and is not there, though no asynchronous standby was promoted under it", delivery.ID, delivery.By.Name)
		}
	}
	report := history.Judge()
	// What is settled does not wait for a standby, so that any of it may come again: the fault is its reason, and no bound.
	for _, problem := range report.Problems(Limits{PerFault: len(arrived)}) {
		t.Error(problem)
	}
	problems, err := r.oracle.problems(t.Context(), r.producers.committed, false)
	f.check(err)
	for _, problem := range problems {
		t.Error(problem)
	}
	if f.told > int64(len(orphans)) {
		t.Errorf("the relays told of %d deliveries without an event; there are %d", f.told, len(orphans))
	}
	t.Logf("%d events, %d promotions, %d of them at work: lost %d, twice %d, inverted %d, without an event %d (told: %d)",
		report.Events, f.faulted, f.met, len(report.Lost), report.Twice, len(report.Inversions), len(orphans), f.told)
}
