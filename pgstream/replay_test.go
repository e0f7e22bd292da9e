package pgstream_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/pgstream"
)

func replayed(t *testing.T, h *harness, replay pgstream.Replay, want int64) {
	t.Helper()
	replay.DryRun = true
	if n, err := (pgstream.Stream{}).Replay(t.Context(), h.pool, replay); err != nil || n != want {
		t.Fatalf("a dry run of %+v counts %d: %v; want %d", replay, n, err, want)
	}
	replay.DryRun = false
	if n, err := (pgstream.Stream{}).Replay(t.Context(), h.pool, replay); err != nil || n != want {
		t.Fatalf("%+v replayed %d: %v; want %d", replay, n, err, want)
	}
}

func TestReplay(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{})
	want := emit(t, h.pool, "a", "b", "a", "", "a")
	replayed(t, h, pgstream.Replay{Key: "a"}, 0) // nothing has been delivered yet
	store := h.open(t, pgstream.Config{})
	if got := drain(t, store); !sameSet(got, want) {
		t.Fatalf("delivered %v", got)
	}
	cursors := h.cursors(t)

	replayed(t, h, pgstream.Replay{Key: "a"}, 3)
	again, err := (pgstream.Stream{}).Replay(t.Context(), h.pool, pgstream.Replay{Key: "a"})
	if err != nil || again != 0 {
		t.Errorf("what waits to be replayed was taken again: %d, %v", again, err)
	}
	if got := drain(t, store); !slices.Equal(got, []uuid.UUID{want[0], want[2], want[4]}) {
		t.Errorf("by key: %v", got)
	}
	replayed(t, h, pgstream.Replay{ID: want[3]}, 1)
	if got := drain(t, store); !slices.Equal(got, want[3:4]) {
		t.Errorf("by id: %v", got)
	}
	replayed(t, h, pgstream.Replay{Type: "made", Topic: "orders", Since: time.Now().Add(-time.Hour)}, 5)
	if got := drain(t, store); !sameSet(got, want) {
		t.Errorf("by time and type: %v", got)
	}
	replayed(t, h, pgstream.Replay{Until: time.Now().Add(-time.Hour)}, 0)
	replayed(t, h, pgstream.Replay{Type: "paid"}, 0)
	if _, err := (pgstream.Stream{}).Replay(t.Context(), h.pool, pgstream.Replay{}); err == nil {
		t.Error("everything was replayed without being asked for")
	}
	if got := h.cursors(t); got != cursors {
		t.Errorf("the cursors moved from %s to %s", cursors, got)
	}
}

// TestReplayDoesNotGate replays an event of a key that fails, while new events of the key
// flow, at the relay that tries it and at one that takes over and reads anew which keys wait.
func TestReplayDoesNotGate(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{Shards: 1})
	store := h.open(t, pgstream.Config{})
	old := emit(t, h.pool, "a")
	drain(t, store)
	replayed(t, h, pgstream.Replay{Key: "a"}, 1)
	store.PassTime()
	batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 10})
	if err != nil || len(batch.Messages()) != 1 || batch.Messages()[0].ID != old[0] {
		t.Fatalf("claimed %v: %v", batch, err)
	}
	if _, err := batch.Settle(t.Context(), []outbox.Outcome{{Kind: outbox.Failed, Delay: time.Hour}}); err != nil {
		t.Fatal(err)
	}
	batch.Abandon()
	if fresh := emit(t, h.pool, "a", "a"); !slices.Equal(drain(t, store), fresh) {
		t.Error("new events of the key wait behind a replayed one")
	}
	h.Expire(t)
	other := h.open(t, pgstream.Config{})
	if fresh := emit(t, h.pool, "a", "a"); !slices.Equal(drain(t, other), fresh) {
		t.Error("new events of the key wait behind one that was replayed to another relay")
	}
}

// TestReplayFilter replays to a subscription that takes some of the events: it gets no others, whatever is asked for.
func TestReplayFilter(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{Shards: 1})
	sub := pgstream.Subscription{Name: "billing", Filter: pgstream.Filter{Topics: []string{"billing"}}}
	if err := (pgstream.Stream{}).CreateSubscription(t.Context(), h.pool, sub, pgstream.StartOldest); err != nil {
		t.Fatal(err)
	}
	emit(t, h.pool, "k") // topic orders
	var id uuid.UUID
	if err := h.pool.QueryRow(t.Context(), `SELECT outbox_emit('made', '{}', 'billing', p_key => 'k')`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	store := h.open(t, pgstream.Config{Subscription: "billing"})
	if got := drain(t, store); !slices.Equal(got, []uuid.UUID{id}) {
		t.Fatalf("delivered %v, want %v", got, id)
	}
	replayed(t, h, pgstream.Replay{Subscription: "billing", Key: "k"}, 1)
	if got := drain(t, store); !slices.Equal(got, []uuid.UUID{id}) {
		t.Errorf("replayed %v, want %v: the subscription takes no other", got, id)
	}
}

// TestReplayRate spreads the due times of a replay.
func TestReplayRate(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{})
	keys := make([]string, 2500) // more than one step
	emit(t, h.pool, keys...)
	drain(t, h.open(t, pgstream.Config{}))
	replayed(t, h, pgstream.Replay{Topic: "orders", Rate: 100}, 2500)
	var spread float64
	var sorted bool
	err := h.pool.QueryRow(t.Context(), `
		SELECT extract(epoch FROM max(next_attempt_at) - min(next_attempt_at))::float8,
		  (SELECT bool_and(ordered) FROM (SELECT next_attempt_at > lag(next_attempt_at, 1, '-infinity') OVER (ORDER BY seq) AS ordered FROM outbox_parked) AS o)
		FROM outbox_parked`).Scan(&spread, &sorted)
	if err != nil || spread < 24.5 || spread > 26 || !sorted {
		t.Errorf("2,500 events at 100 a second take %.1f s, in order: %v (%v)", spread, sorted, err)
	}
}

// TestReplayLeavesTheDead counts and replays what was delivered: an event that is dead was not.
func TestReplayLeavesTheDead(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{Shards: 1})
	store := h.open(t, pgstream.Config{})
	ids := emit(t, h.pool, "a", "a", "a")
	batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 10})
	if err != nil || len(batch.Messages()) != 3 {
		t.Fatalf("claimed %v: %v", batch, err)
	}
	settle(t, batch, map[uuid.UUID]outbox.Outcome{ids[1]: {Kind: outbox.Died, Error: "no use", Reason: outbox.ReasonTerminal}})
	replayed(t, h, pgstream.Replay{Key: "a"}, 2)
	if got := drain(t, store); !slices.Equal(got, []uuid.UUID{ids[0], ids[2]}) {
		t.Errorf("replayed %v, want %v and %v", got, ids[0], ids[2])
	}
}

// TestDeadReplayDoesNotBlock has a replayed event die in a subscription whose keys wait behind a dead event: the event was
// delivered once, so that nothing waits for it.
func TestDeadReplayDoesNotBlock(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{Shards: 1})
	sub := pgstream.Subscription{Name: "strict", OnDead: pgstream.DeadBlocks}
	if err := (pgstream.Stream{}).CreateSubscription(t.Context(), h.pool, sub, pgstream.StartOldest); err != nil {
		t.Fatal(err)
	}
	old := emit(t, h.pool, "a")
	store := h.open(t, pgstream.Config{Subscription: "strict"})
	drain(t, store)
	replayed(t, h, pgstream.Replay{Subscription: "strict", Key: "a"}, 1)
	store.PassTime()
	batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 10})
	if err != nil || len(batch.Messages()) != 1 {
		t.Fatalf("claimed %v: %v", batch, err)
	}
	settle(t, batch, map[uuid.UUID]outbox.Outcome{old[0]: {Kind: outbox.Died, Error: "no use", Reason: outbox.ReasonTerminal}})
	if fresh := emit(t, h.pool, "a", "a"); !slices.Equal(drain(t, store), fresh) {
		t.Error("new events of the key wait behind a replayed one that is dead")
	}
	h.Expire(t)
	if fresh := emit(t, h.pool, "a"); !slices.Equal(drain(t, h.open(t, pgstream.Config{Subscription: "strict"})), fresh) {
		t.Error("new events of the key wait behind one that died at another relay when it was replayed")
	}
}
