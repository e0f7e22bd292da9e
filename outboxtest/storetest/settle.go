package storetest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
)

type (
	outcome = outbox.Outcome
	id      = uuid.UUID
)

func testDelivered(_ *testing.T, b *bench) {
	store := b.open(Options{})
	id := b.Emit(b.T, 1)[0]
	b.settle(b.claimIDs(store, 10, id), delivered)
	b.want(id, Delivered, b.counted(1))
	b.claimIDs(store, 10)
}

// counted is the number of attempts in the row after n attempts, the last of which did
// not fail.
func (b *bench) counted(n int) int {
	if b.features.CountsOnClaim {
		return n
	}
	return n - 1
}

func testFailed(_ *testing.T, b *bench) {
	store := b.open(Options{})
	id := b.Emit(b.T, 1)[0]
	later := failed
	later.Delay = time.Hour
	b.settle(b.claimIDs(store, 10, id), later)
	state := b.want(id, Pending, 1)
	if state.LastError != "not now" {
		b.Errorf("the last error is %q", state.LastError)
	}
	if !b.features.Backoff {
		b.settle(b.claimIDs(store, 10, id), failed)
		b.want(id, Pending, 2)
		return
	}
	if state.DueIn < 59*time.Minute || state.DueIn > 61*time.Minute {
		b.Errorf("due in %s, want an hour", state.DueIn)
	}
	b.claimIDs(store, 10)
	b.Age(b.T, 2*time.Hour)
	b.settle(b.claimIDs(store, 10, id), failed)
	b.want(id, Pending, 2)
}

func testDead(_ *testing.T, b *bench) {
	store := b.open(Options{})
	id := b.Emit(b.T, 1)[0]
	b.settle(b.claimIDs(store, 10, id), died)
	state := b.want(id, Dead, 1)
	if state.LastError != "no use" {
		b.Errorf("the last error is %q", state.LastError)
	}
	if state.Reason != "" && state.Reason != string(outbox.ReasonTerminal) {
		b.Errorf("the reason is %q", state.Reason)
	}
	b.claimIDs(store, 10)
	// Dead events at the head are not in the way: as many as a claim takes, and one behind them.
	more := b.Emit(b.T, 3)
	b.settle(b.claimIDs(store, 2, more[:2]...), died)
	b.settle(b.claimIDs(b.takeOver(Options{}), 2, more[2]), delivered)
	// A higher maximum does not bring it back.
	b.claimIDs(b.takeOver(Options{MaxAttempts: 100}), 10)
}

func testReleased(_ *testing.T, b *bench) {
	store := b.open(Options{})
	id := b.Emit(b.T, 1)[0]
	b.settle(b.claimIDs(store, 10, id), released)
	b.want(id, Pending, 0)
	batch := b.claimIDs(store, 10, id)
	if got := batch.Messages()[0].Attempt; got != 1 {
		b.Errorf("the attempt after a release is %d, want 1", got)
	}
	b.settle(batch, delivered)
}

func testMixed(_ *testing.T, b *bench) {
	store := b.open(Options{})
	want := b.Emit(b.T, 8)
	batch := b.claimIDs(store, 10, want...)
	later := failed
	later.Delay = time.Hour
	outcomes := []outcome{delivered, later, died, released, delivered, later, died, released}
	lost, err := batch.Settle(b.Context(), outcomes)
	if err != nil || len(lost) > 0 {
		b.Fatalf("lost %v: %v", lost, err)
	}
	batch.Abandon()
	for _, i := range []int{0, 4} {
		b.want(want[i], Delivered, b.counted(1))
		b.want(want[i+1], Pending, 1)
		b.want(want[i+2], Dead, 1)
		b.want(want[i+3], Pending, 0)
	}
	if _, err := batch.Settle(b.Context(), []outcome{delivered}); err == nil {
		b.Error("one outcome for eight messages was taken")
	}
}

func testAttempts(_ *testing.T, b *bench) {
	store := b.open(Options{})
	id := b.Emit(b.T, 1)[0]
	for attempt := 1; attempt <= 3; attempt++ {
		batch := b.claimIDs(store, 10, id)
		message := batch.Messages()[0]
		if message.Attempt != attempt || message.MaxAttempts < attempt {
			b.Fatalf("attempt %d of %d, want %d", message.Attempt, message.MaxAttempts, attempt)
		}
		if message.CreatedAt.IsZero() || message.CreatedAt.Location() != time.UTC || len(message.Payload) == 0 {
			b.Errorf("the message is %+v", message)
		}
		last := failed
		if attempt == 3 {
			last = outcome{Kind: outbox.Died, Error: "third", Reason: outbox.ReasonMaxAttempts}
		}
		b.settle(batch, last)
	}
	if state := b.want(id, Dead, 3); state.LastError != "third" {
		b.Errorf("the last error is %q", state.LastError)
	}
}

// testLost is a worker that was stopped past its lease and continues.
func testLost(_ *testing.T, b *bench) {
	if !b.features.Expires {
		return // its rows are held by the connection itself
	}
	first, second := b.open(Options{}), b.open(Options{})
	want := b.Emit(b.T, 3)
	stale := b.claimIDs(first, 10, want...)
	b.Expire(b.T)
	current := b.claimIDs(second, 10, want...)
	if n := current.Reclaimed(); n != 3 && b.features.CountsOnClaim {
		b.Errorf("%d events were reclaimed, want 3", n)
	}
	if err := stale.Renew(b.Context()); !errors.Is(err, outbox.ErrLeaseLost) {
		b.Errorf("renewing a lost claim: %v", err)
	}
	for _, outcome := range []outcome{delivered, failed, died, released} {
		if lost := b.trySettle(stale, outcome); len(lost) != 3 {
			b.Fatalf("%s of a lost claim: %d events refused, want 3", outcome.Kind, len(lost))
		}
	}
	for _, id := range want {
		if state := b.State(b.T, id); state.Status != Held {
			b.Errorf("event %s is %q, want it held by its new owner", id, state.Status)
		}
	}
	b.settle(current, delivered)
	if lost := b.trySettle(current, failed); len(lost) != 3 {
		b.Errorf("a settled batch was settled again")
	}
}

// testLostToItself is the same worker claiming its own expired row again: the fence is the
// claim, not the worker.
func testLostToItself(_ *testing.T, b *bench) {
	if !b.features.Expires {
		return // its rows are held by the connection itself
	}
	worker := uuid.New()
	store := b.open(Options{WorkerID: worker})
	id := b.Emit(b.T, 1)[0]
	stale := b.claimIDs(store, 10, id)
	b.Expire(b.T)
	again := b.open(Options{WorkerID: worker})
	current := b.claimIDs(again, 10, id)
	if lost := b.trySettle(stale, delivered); len(lost) != 1 {
		b.Fatal("the old claim of the same worker was settled")
	}
	b.settle(current, delivered)
	b.want(id, Delivered, b.counted(2-b.uncountedExpiry()))
}

// uncountedExpiry is 1 where an attempt that was never settled was not counted.
func (b *bench) uncountedExpiry() int {
	if b.features.CountsOnClaim {
		return 0
	}
	return 1
}

func testRenew(_ *testing.T, b *bench) {
	first, second := b.open(Options{}), b.open(Options{})
	want := b.Emit(b.T, 3)
	batch := b.claimIDs(first, 10, want...)
	if err := batch.Renew(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.claimIDs(second, 10)
	if err := batch.Renew(b.Context()); err != nil {
		b.Fatal(err)
	}
	// Renewing moved the rows; they are found all the same.
	b.settle(batch, delivered)
	for _, id := range want {
		b.want(id, Delivered, b.counted(1))
	}
}

func testDiedOnLastAttempt(_ *testing.T, b *bench) {
	if !b.features.CountsOnClaim {
		return // an attempt that nobody settled is not counted, and is made again
	}
	for _, bySweep := range []bool{false, true} {
		id := b.Emit(b.T, 1)[0]
		store := b.open(Options{MaxAttempts: 1})
		b.claimIDs(store, 10, id) // and the worker dies
		b.Expire(b.T)
		if bySweep {
			if dead, err := store.Sweep(b.Context()); err != nil || dead != 1 {
				b.Fatalf("the sweep moved %d events: %v", dead, err)
			}
		} else {
			batch := b.claimIDs(b.open(Options{MaxAttempts: 1}), 10)
			if exhausted := batch.Exhausted(); len(exhausted) != 1 || exhausted[0].ID != id {
				b.Fatalf("found %v with used-up attempts", exhausted)
			}
		}
		state := b.want(id, Dead, 1)
		if !strings.Contains(state.LastError, "used up") {
			b.Errorf("the last error is %q", state.LastError)
		}
	}
}

func testLowerMaximum(_ *testing.T, b *bench) {
	id := b.Emit(b.T, 1)[0]
	store := b.open(Options{MaxAttempts: 5})
	b.settle(b.claimIDs(store, 10, id), failed)
	b.settle(b.claimIDs(store, 10, id), failed)
	b.want(id, Pending, 2)
	maximum := 2
	row, ok := b.Harness.(RowMaximum)
	if ok = ok && row.HasMaximum(); ok {
		// The row says itself, whatever the store does: more than the store, then less.
		b.settle(b.claimIDs(b.takeOver(Options{MaxAttempts: maximum}), 10, id), released)
		row.LowerMaximum(b.T, maximum)
		maximum = 5
	}
	batch := b.claimIDs(b.takeOver(Options{MaxAttempts: maximum}), 10)
	if len(batch.Exhausted()) != 1 {
		b.Fatalf("found %d events with used-up attempts, want 1", len(batch.Exhausted()))
	}
	batch.Abandon()
	if state := b.want(id, Dead, 2); !strings.Contains(state.LastError, "used up") {
		b.Errorf("the last error is %q", state.LastError)
	}
}

func testAbandon(_ *testing.T, b *bench) {
	first, second := b.open(Options{}), b.open(Options{})
	id := b.Emit(b.T, 1)[0]
	b.claimIDs(first, 10, id).Abandon()
	if b.features.Expires {
		b.claimIDs(second, 10)
		b.Expire(b.T)
		second = b.open(Options{}) // a store that has just looked for expired leases may wait before it does again
	}
	b.settle(b.claimIDs(second, 10, id), delivered)
}
