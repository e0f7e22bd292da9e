package storetest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
)

func testEmpty(_ *testing.T, b *bench) {
	store := b.open(Options{})
	if batch := b.claim(store, 10); len(batch.Messages()) != 0 || len(batch.Exhausted()) != 0 {
		b.Fatalf("claimed %d events from nothing", len(batch.Messages()))
	}
}

func testOrder(_ *testing.T, b *bench) {
	store := b.open(Options{})
	want := b.Emit(b.T, 25)
	for _, ids := range [][]uuid.UUID{want[:10], want[10:20], want[20:]} {
		batch := b.claimIDs(store, 10, ids...)
		if b.features.InOrder {
			b.claimIDs(store, 10)
			b.settle(batch, delivered)
		}
	}
	b.claimIDs(store, 10)
}

// testExclusive lets several stores claim and settle all at once.
func testExclusive(_ *testing.T, b *bench) {
	const events, workers = 400, 4
	want := b.Emit(b.T, events)
	var mu sync.Mutex
	seen := make(map[uuid.UUID]int)
	var wg sync.WaitGroup
	failures := make(chan error, workers)
	for range workers {
		store := b.open(Options{})
		wg.Go(func() {
			for {
				batch, err := store.Claim(b.Context(), outbox.ClaimRequest{Limit: 7})
				if err != nil {
					failures <- err
					return
				}
				n := len(batch.Messages())
				mu.Lock()
				for _, id := range ids(batch) {
					seen[id]++
				}
				total := len(seen)
				mu.Unlock()
				if n > 0 {
					outcomes := make([]outcome, n)
					for i := range outcomes {
						outcomes[i] = delivered
					}
					if lost, err := batch.Settle(b.Context(), outcomes); err != nil || len(lost) > 0 {
						failures <- fmt.Errorf("lost %v: %w", lost, err)
						batch.Abandon()
						return
					}
				}
				batch.Abandon()
				if total == events {
					return
				}
			}
		})
	}
	wg.Wait()
	close(failures)
	for err := range failures {
		b.Error(err)
	}
	for _, id := range want {
		if seen[id] != 1 {
			b.Fatalf("event %s was claimed %d times", id, seen[id])
		}
	}
}

// testLateCommit has the older of two transactions commit last. Harness.Emit commits, so
// the store's own watermark, not the test's order, is what could skip it.
func testLateCommit(_ *testing.T, b *bench) {
	store := b.open(Options{})
	late, ok := b.Harness.(interface {
		EmitLate(t *testing.T, meanwhile func()) uuid.UUID
	})
	if !ok {
		b.Fatal("the harness cannot emit late")
	}
	var early []uuid.UUID
	id := late.EmitLate(b.T, func() {
		early = b.Emit(b.T, 5)
		b.settle(b.claimIDs(store, 3, early[:3]...), delivered)
		b.settle(b.claimIDs(store, 3, early[3:]...), delivered)
	})
	b.settle(b.claimIDs(store, 3, id), delivered)
}
