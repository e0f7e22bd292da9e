package pgstream_test

import (
	"testing"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/pgstream"
)

// setBack moves what relays have written into the future, which is where it is when the server's clock is set back, by
// two hours.
func (h *harness) setBack(t *testing.T) {
	t.Helper()
	const by = 2 * time.Hour
	h.mu.Lock()
	for _, store := range h.stores {
		store.AwaitReadAhead()
	}
	h.mu.Unlock()
	pgtest.Exec(t, h.pool, `UPDATE outbox_shards SET locked_until = locked_until + make_interval(secs => $1),
		opened_at = opened_at + make_interval(secs => $1)`, by.Seconds())
	pgtest.Exec(t, h.pool, `UPDATE outbox_relays SET alive_until = alive_until + make_interval(secs => $1),
		started_at = started_at + make_interval(secs => $1)`, by.Seconds())
}

// leases are how far ahead the last lease of a shard and of a relay end.
func (h *harness) leases(t *testing.T) (shard, relay time.Duration) {
	t.Helper()
	var ofShard, ofRelay float64
	if err := h.pool.QueryRow(t.Context(), `SELECT extract(epoch FROM (SELECT max(locked_until) FROM outbox_shards) - now())::float8,
		extract(epoch FROM (SELECT max(alive_until) FROM outbox_relays) - now())::float8`).Scan(&ofShard, &ofRelay); err != nil {
		t.Fatal(err)
	}
	return time.Duration(ofShard * float64(time.Second)), time.Duration(ofRelay * float64(time.Second))
}

// claimNow claims as a store does whose renewals are due.
func claimNow(t *testing.T, store *pgstream.Store, want int) outbox.Batch {
	t.Helper()
	store.PassTime()
	batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 10})
	if err != nil || len(batch.Messages()) != want {
		t.Fatalf("%d events claimed, want %d: %v", len(batch.Messages()), want, err)
	}
	return batch
}

// TestClockSetBack sets the server's clock back by two hours while the lease of a dead relay stands. Another relay has its
// shard within one lease: it does not take it at once, as the first may be alive, and it does not wait for two hours.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	const lease = time.Minute
	h := newHarness(t, pgstream.Shape{Shards: 1})
	emit(t, h.pool, "k", "k")
	dead, other := h.open(t, pgstream.Config{Lease: lease}), h.open(t, pgstream.Config{Lease: 10 * time.Minute})
	publishing := claimNow(t, dead, 2)
	h.setBack(t)
	if lag, err := (pgstream.Stream{}).Lag(t.Context(), h.pool, pgstream.DefaultSubscription); err != nil || len(lag.Relays) > 0 {
		t.Errorf("%d relays count as alive by a lease that nobody can have written: %v", len(lag.Relays), err)
	}
	claimNow(t, other, 0).Abandon()
	var ofDead float64
	if err := h.pool.QueryRow(t.Context(), `SELECT extract(epoch FROM alive_until - now())::float8 FROM outbox_relays WHERE worker = $1`,
		dead.WorkerID()).Scan(&ofDead); err != nil || ofDead > lease.Seconds() {
		t.Errorf("the dead relay counts as alive for another %.0f s, want its lease of %s: %v", ofDead, lease, err)
	}
	if shard, _ := h.leases(t); shard > lease || shard < lease/2 {
		t.Errorf("the shard is the dead relay's for another %s, want its lease of %s", shard, lease)
	}
	h.Expire(t) // as when that time has passed
	claimNow(t, other, 2).Abandon()
	lost, err := publishing.Settle(t.Context(), []outbox.Outcome{{Kind: outbox.Delivered}, {Kind: outbox.Delivered}})
	if err != nil || len(lost) != 2 {
		t.Errorf("%d events were lost by the first relay, want 2: %v", len(lost), err)
	}
	publishing.Abandon()
}

// TestClockSetBackUnderLivingRelay has the first relay alive: it keeps its shard, and settles.
func TestClockSetBackUnderLivingRelay(t *testing.T) {
	t.Parallel()
	// Two shards, so that the other relay wants one of them, whichever it is.
	h := newHarness(t, pgstream.Shape{Shards: 2})
	emit(t, h.pool, "a", "b", "c", "d", "e", "f")
	if n := h.count(t, `SELECT count(DISTINCT shard) FROM outbox_stream`); n != 2 {
		t.Fatalf("the events are in %d shards, want 2", n)
	}
	living, other := h.open(t, pgstream.Config{}), h.open(t, pgstream.Config{})
	publishing := claimNow(t, living, 6)
	h.setBack(t)
	claimNow(t, other, 0).Abandon() // it sees that the lease is too long, and then
	claimNow(t, other, 0).Abandon() // that it is not free
	if err := publishing.Renew(t.Context()); err != nil {
		t.Errorf("a relay that is alive has lost its lease: %v", err)
	}
	claimNow(t, other, 0).Abandon()
	settle(t, publishing, nil)
	if shard, relay := h.leases(t); shard > pgstream.DefaultLease || relay > pgstream.DefaultLease {
		t.Errorf("leases end in %s and %s, want at most %s", shard, relay, pgstream.DefaultLease)
	}
}

// TestLeaseOfUnknownLength has a relay of a program that does not say how long its lease is: it keeps it, up to a bound.
func TestLeaseOfUnknownLength(t *testing.T) {
	t.Parallel()
	const bound = 5 * time.Minute
	h := newHarness(t, pgstream.Shape{Shards: 1})
	emit(t, h.pool, "k")
	earlier, other := h.open(t, pgstream.Config{Lease: bound}), h.open(t, pgstream.Config{})
	publishing := claimNow(t, earlier, 1)
	earlier.AwaitReadAhead()
	pgtest.Exec(t, h.pool, `UPDATE outbox_relays SET lease_seconds = NULL`)
	claimNow(t, other, 0).Abandon()
	if shard, _ := h.leases(t); shard < bound-time.Minute {
		t.Errorf("a lease of %s, which is possible, was shortened to %s", bound, shard)
	}
	h.setBack(t)
	claimNow(t, other, 0).Abandon()
	if shard, relay := h.leases(t); shard > bound || relay > bound {
		t.Errorf("leases end in %s and %s, want at most %s", shard, relay, bound)
	}
	settle(t, publishing, nil)
}

// TestWindowOfTheFuture has an event that only the window finds which is opened every ten seconds, as its slot is none that
// is written to now, and a shard whose last window was opened before the clock was set back.
func TestWindowOfTheFuture(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{Shards: 1})
	store := h.open(t, pgstream.Config{})
	emit(t, h.pool, "k")
	settle(t, claimNow(t, store, 1), nil)
	h.setBack(t)
	pgtest.Exec(t, h.pool, `INSERT INTO outbox_stream (slot, shard, id, topic, type, key, payload)
		SELECT (e.slot + 3) % 8, shard, gen_random_uuid(), topic, type, key, payload FROM outbox_stream AS e`)
	settle(t, claimNow(t, store, 1), nil)
}
