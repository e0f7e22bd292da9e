package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/packfinderz/outbox"
)

func testRetryDead(_ *testing.T, b *bench) {
	store := b.open(Options{})
	want := b.Emit(b.T, 2)
	b.settle(b.claimIDs(store, 10, want...), died)
	b.claimIDs(store, 10)
	if retried := b.Retry(b.T, store, want[0]); len(retried) != 1 || retried[0] != want[0] {
		b.Fatalf("retried %v", retried)
	}
	b.want(want[0], Pending, 0)
	b.want(want[1], Dead, 1)
	batch := b.claimIDs(b.takeOver(Options{}), 10, want[0])
	if got := batch.Messages()[0].Attempt; got != 1 {
		b.Errorf("the attempt after a retry is %d, want 1", got)
	}
	b.settle(batch, died)
	b.want(want[0], Dead, 1)
	// Only what is dead can be retried, and as often as one likes.
	if retried := b.Retry(b.T, store, want[0], want[0]); len(retried) != 1 {
		b.Fatalf("retried %v", retried)
	}
	if retried := b.Retry(b.T, store, want[0]); len(retried) != 0 {
		b.Fatalf("retried %v, which was not dead", retried)
	}
	b.settle(b.claimIDs(b.takeOver(Options{}), 10, want[0]), delivered)
	b.want(want[0], Delivered, b.counted(1))
	if retried := b.Retry(b.T, store, want[0]); len(retried) != 0 {
		b.Fatalf("retried %v, which was delivered", retried)
	}
}

func testPurge(_ *testing.T, b *bench) {
	if !b.features.DeliveredIsKept {
		return // there is nothing to purge
	}
	store := b.open(Options{})
	want := b.Emit(b.T, 6)
	waits, waiting := failed, Pending
	waits.Delay = 1000 * time.Hour
	if !b.features.Backoff {
		waits, waiting = died, Dead // nothing waits there
	}
	batch := b.claimIDs(store, 5, want[:5]...)
	if lost, err := batch.Settle(b.Context(), []outcome{delivered, delivered, died, waits, delivered}); err != nil || len(lost) > 0 {
		b.Fatalf("lost %v: %v", lost, err)
	}
	batch.Abandon()
	b.Age(b.T, 48*time.Hour)
	store = b.open(Options{}) // time went backwards for the rows, which a store may not expect
	fresh := b.Emit(b.T, 1)[0]
	b.settle(b.claimIDs(store, 10, want[5], fresh), delivered)
	b.Age(b.T, 12*time.Hour)
	held := b.Emit(b.T, 1)[0]
	b.claimIDs(store, 10, held)

	purge := outbox.Purge{Retention: 24 * time.Hour, BatchSize: 2}
	dry := purge
	dry.DryRun = true
	if n, err := store.Purge(b.Context(), dry); err != nil || n != 3 {
		b.Fatalf("a dry run counts %d: %v", n, err)
	}
	var steps []int64
	purge.Progress = func(n int64) { steps = append(steps, n) }
	if n, err := store.Purge(b.Context(), purge); err != nil || n != 3 {
		b.Fatalf("purged %d: %v", n, err)
	}
	if !slices.Equal(steps, []int64{2, 3}) {
		b.Errorf("progress was %v, want steps of 2", steps)
	}
	for i, status := range []Status{"", "", Dead, waiting, "", Delivered} {
		if state := b.State(b.T, want[i]); state.Status != status {
			b.Errorf("event %d is %q, want %q", i, state.Status, status)
		}
	}
	if state := b.State(b.T, fresh); state.Status != Delivered {
		b.Errorf("a fresh event is %q", state.Status)
	}
	if _, err := store.Purge(b.Context(), outbox.Purge{}); err == nil {
		b.Error("a purge without a retention was done")
	}
}

func testStats(_ *testing.T, b *bench) {
	store := b.open(Options{})
	stats := func() outbox.Stats {
		b.Helper()
		stats, err := store.Stats(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		return stats
	}
	if got := stats(); got != (outbox.Stats{}) {
		b.Errorf("an empty store: %+v", got)
	}
	want := b.Emit(b.T, 10)
	b.Age(b.T, time.Hour)
	if got := stats(); got.Due != 10 || got.OldestAge < time.Hour || got.OldestAge > 2*time.Hour {
		b.Errorf("ten due: %+v", got)
	}
	later := failed
	later.Delay = 10 * time.Hour
	batch := b.claimIDs(store, 6, want[:6]...)
	if _, err := batch.Settle(b.Context(), []outcome{delivered, died, died, later, later, later}); err != nil {
		b.Fatal(err)
	}
	batch.Abandon()
	b.claimIDs(store, 2, b.claimable(want)...)
	got := stats()
	if got.Dead != 2 {
		b.Errorf("two dead: %+v", got)
	}
	if b.features.Expires && (got.Held != 2 || got.Due != 2 || got.Retrying != 3) {
		b.Errorf("two held, two due, three waiting: %+v", got)
	}
	if !b.features.Expires && b.features.Backoff && got.Retrying != 3 {
		b.Errorf("three waiting: %+v", got)
	}
	if got.Due+got.Held+got.Retrying != 7 || got.Scheduled != 0 || got.Exhausted != 0 {
		b.Errorf("seven undelivered: %+v", got)
	}
	if got.OldestAge < time.Hour || got.OldestAge > 2*time.Hour {
		b.Errorf("an hour old: %+v", got)
	}
	b.Retry(b.T, store, want[1])
	if again := stats(); again.Dead != 1 || again.Due != got.Due+1 {
		b.Errorf("one of the dead retried: %+v, before that %+v", again, got)
	}
}

// claimable are the two events that come next after testStats settled six.
func (b *bench) claimable(want []id) []id {
	if b.features.Backoff {
		return want[6:8]
	}
	return want[3:5]
}
