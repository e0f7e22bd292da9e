// Package outagetest takes destinations away under a relay and checks that no event pays for it: none is dead, no attempt
// is counted, all arrive, and none twice but those that were in doubt.
//
// Packages that use it let pgtest.Main run their tests, and name the test TestOutages: make chaos runs them all with
// OUTBOX_CHAOS=long, in which every fault lasts five minutes.
package outagetest

import (
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
)

// Destination is one that a test can take away.
type Destination struct {
	// Publisher is as the program makes it from its URL. It is called once.
	Publisher func(t testing.TB) outbox.Publisher
	// Received is all that arrived, duplicates included.
	Received func(t testing.TB) []uuid.UUID
	// Topic is where the events go; publishertest.Topic unless set.
	Topic string
	// OtherTopic, if set, gets every tenth event.
	OtherTopic string
	// Faults are what can happen to it.
	Faults []Fault
}

// Fault is what happens to a destination.
type Fault struct {
	// Name is what the faults of all destinations are called alike: refused, hung, dropped, TLS broken, credentials
	// revoked, topic deleted, slow.
	Name string
	// Begin takes the destination away, and End brings it back.
	Begin, End func(t testing.TB)
	// Slow is set when it goes on to deliver, slowly: nothing may be counted, but no route has to be closed.
	Slow bool
	// Topic is set when only Destination.Topic is away: what goes to OtherTopic has to arrive meanwhile.
	Topic bool
}

// Run has each of the faults happen to a destination of its own. They are named here because a destination is made for
// each of them; one that has others, too, fails the test.
func Run(t *testing.T, destination func(t testing.TB) Destination, faults ...string) {
	t.Helper()
	if len(faults) == 0 {
		t.Fatal("outagetest: no faults")
	}
	for _, name := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := destination(t)
			for _, f := range d.Faults {
				if !slices.Contains(faults, f.Name) {
					t.Errorf("the fault %q is not run", f.Name)
				}
			}
			i := slices.IndexFunc(d.Faults, func(f Fault) bool { return f.Name == name })
			if i < 0 {
				t.Fatalf("the destination has no fault %q", name)
			}
			newBed(t, d).run(d.Faults[i])
		})
	}
}
