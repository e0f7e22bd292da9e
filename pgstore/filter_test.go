package pgstore_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/outboxtest/storetest"
	"github.com/packfinderz/outbox/pgstore"
)

// TestFilter has two modules, topics or tenants share a table. A store of one of them claims,
// sweeps, counts and purges nothing of the other's.
func TestFilter(t *testing.T) {
	t.Parallel()
	tenant := uuid.New()
	for name, c := range map[string]struct {
		filter pgstore.Filter
		mine   func(*outbox.Event)
	}{
		"namespace": {pgstore.Filter{Namespace: "mine"}, func(event *outbox.Event) { event.Namespace = "mine" }},
		"topic":     {pgstore.Filter{Topics: []string{"also", "mine"}}, func(event *outbox.Event) { event.Topic = "mine" }},
		"tenant":    {pgstore.Filter{TenantID: tenant}, func(event *outbox.Event) { event.TenantID = tenant }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for what, test := range map[string]func(t *testing.T, f *filtered){
				"claim": testFilteredClaim, "claim of what ran out": testFilteredReclaim,
				"sweep": testFilteredSweep, "stats": testFilteredStats, "purge": testFilteredPurge,
			} {
				t.Run(what, func(t *testing.T) {
					t.Parallel()
					h := newHarness(t, "modkit")
					mine, other := h.event(), h.event()
					c.mine(&mine)
					other.TenantID = uuid.New()
					ids := h.emit(t, mine, other)
					test(t, &filtered{
						harness: h, mine: ids[0], other: ids[1], all: h.open(t, pgstore.Config{MaxAttempts: 1}),
						store: h.open(t, pgstore.Config{MaxAttempts: 1, Filter: c.filter}),
					})
				})
			}
		})
	}
}

// filtered is a table with two events, one of which a store may not touch.
type filtered struct {
	*harness
	mine, other uuid.UUID
	all, store  *pgstore.Store
}

// claim claims with a store, and fails unless it takes a number of events.
func (f *filtered) claim(t *testing.T, store *pgstore.Store, want int) outbox.Batch {
	t.Helper()
	batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	if got := len(batch.Messages()) + len(batch.Exhausted()); got != want {
		t.Fatalf("claimed %d events, want %d", got, want)
	}
	return batch
}

// want fails unless the two events stand so.
func (f *filtered) want(t *testing.T, mine, other storetest.Status) {
	t.Helper()
	if got := f.State(t, f.mine).Status; got != mine {
		t.Errorf("the store's own event is %q, want %q", got, mine)
	}
	if got := f.State(t, f.other).Status; got != other {
		t.Errorf("the other event is %q, want %q", got, other)
	}
}

func testFilteredClaim(t *testing.T, f *filtered) {
	t.Helper()
	f.claim(t, f.store, 1)
	f.want(t, storetest.Held, storetest.Pending)
}

func testFilteredReclaim(t *testing.T, f *filtered) {
	t.Helper()
	f.claim(t, f.all, 2)
	f.Expire(t)
	f.claim(t, f.store, 1) // which had used its attempts up
	f.want(t, storetest.Dead, storetest.Held)
}

func testFilteredSweep(t *testing.T, f *filtered) {
	t.Helper()
	f.claim(t, f.all, 2)
	f.Expire(t)
	for _, want := range []int64{1, 0} {
		if n, err := f.store.Sweep(t.Context()); err != nil || n != want {
			t.Errorf("swept %d events, want %d: %v", n, want, err)
		}
	}
	f.want(t, storetest.Dead, storetest.Held)
	if n, err := f.all.Sweep(t.Context()); err != nil || n != 1 {
		t.Errorf("a store of all swept %d events: %v", n, err)
	}
	f.want(t, storetest.Dead, storetest.Dead)
}

func testFilteredStats(t *testing.T, f *filtered) {
	t.Helper()
	want := func(want outbox.Stats) {
		t.Helper()
		got, err := f.store.Stats(t.Context())
		got.OldestAge = 0
		if err != nil || got != want {
			t.Errorf("stats are %+v, want %+v: %v", got, want, err)
		}
	}
	want(outbox.Stats{Due: 1})
	batch := f.claim(t, f.all, 2)
	want(outbox.Stats{Held: 1})
	died := outbox.Outcome{Kind: outbox.Died, Error: "no", Reason: outbox.ReasonTerminal}
	if _, err := batch.Settle(t.Context(), []outbox.Outcome{died, died}); err != nil {
		t.Fatal(err)
	}
	want(outbox.Stats{Dead: 1})
}

func testFilteredPurge(t *testing.T, f *filtered) {
	t.Helper()
	batch := f.claim(t, f.all, 2)
	if _, err := batch.Settle(t.Context(), []outbox.Outcome{{Kind: outbox.Delivered}, {Kind: outbox.Delivered}}); err != nil {
		t.Fatal(err)
	}
	f.Age(t, 48*time.Hour)
	for _, dry := range []bool{true, false} {
		n, err := f.store.Purge(t.Context(), outbox.Purge{Retention: time.Hour, DryRun: dry})
		if err != nil || n != 1 {
			t.Errorf("dry run %t: purged %d events, want 1: %v", dry, n, err)
		}
	}
	f.want(t, "", storetest.Delivered)
}
