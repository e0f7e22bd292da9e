package pgstream_test

import (
	"testing"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/pgstream"
)

// TestSleeper stops a relay for longer than its lease, as SIGSTOP or a suspended machine does, while it has a page read
// ahead. When it goes on, the shard is somebody else's, and it must not hand that page out.
func TestSleeper(t *testing.T) {
	t.Parallel()
	const lease = 500 * time.Millisecond
	h := newHarness(t, pgstream.Shape{Shards: 1})
	emit(t, h.pool, "k", "k", "k", "k")
	sleeper := h.open(t, pgstream.Config{Lease: lease})
	batch, err := sleeper.Claim(t.Context(), outbox.ClaimRequest{Limit: 2})
	if err != nil || len(batch.Messages()) != 2 {
		t.Fatalf("%d events claimed: %v", len(batch.Messages()), err)
	}
	// Settling waits for nobody; the next page has been read by the time of the next claim.
	if lost, err := batch.Settle(t.Context(), []outbox.Outcome{{Kind: outbox.Delivered}, {Kind: outbox.Delivered}}); err != nil || len(lost) > 0 {
		t.Fatalf("lost %v: %v", lost, err)
	}
	batch.Abandon()
	<-time.After(2 * lease)
	if ids := drain(t, h.open(t, pgstream.Config{Lease: time.Minute})); len(ids) != 2 {
		t.Fatalf("the other relay takes %d events over, want 2", len(ids))
	}
	batch, err = sleeper.Claim(t.Context(), outbox.ClaimRequest{Limit: 2})
	if err != nil || len(batch.Messages()) != 0 {
		t.Errorf("the relay that slept hands out %d events that are not its own: %v", len(batch.Messages()), err)
	}
}

// TestLostWhilePublishing has a relay lose a shard while it publishes from it, and the shard free again meanwhile. The
// relay must not take it back and publish the same events beside themselves; anybody else may.
func TestLostWhilePublishing(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{Shards: 1})
	emit(t, h.pool, "k", "k")
	claim := func(store *pgstream.Store, want int) outbox.Batch {
		t.Helper()
		store.PassTime()
		batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 10})
		if err != nil || len(batch.Messages()) != want {
			t.Fatalf("%d events claimed, want %d: %v", len(batch.Messages()), want, err)
		}
		return batch
	}
	slow, other := h.open(t, pgstream.Config{}), h.open(t, pgstream.Config{})
	publishing := claim(slow, 2)
	h.Expire(t)
	claim(other, 2).Abandon()
	if err := other.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	claim(slow, 0).Abandon()
	h.Expire(t) // or the shard would be slow's share
	claim(other, 2).Abandon()
	if err := other.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	lost, err := publishing.Settle(t.Context(), []outbox.Outcome{{Kind: outbox.Delivered}, {Kind: outbox.Delivered}})
	if err != nil || len(lost) != 2 {
		t.Errorf("%d events were lost, want 2: %v", len(lost), err)
	}
	publishing.Abandon()
	claim(slow, 2).Abandon()
}
