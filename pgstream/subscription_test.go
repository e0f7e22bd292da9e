package pgstream_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/pgstream"
)

// drain claims and delivers until nothing is due, and returns the ids in order.
func drain(t *testing.T, store *pgstream.Store) (ids []uuid.UUID) {
	t.Helper()
	for {
		store.PassTime()
		batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		messages := batch.Messages()
		if len(messages) == 0 {
			return ids
		}
		outcomes := make([]outbox.Outcome, len(messages))
		for i := range messages {
			ids = append(ids, messages[i].ID)
			outcomes[i].Kind = outbox.Delivered
		}
		lost, err := batch.Settle(t.Context(), outcomes)
		if err != nil || len(lost) > 0 {
			t.Fatalf("lost %v: %v", lost, err)
		}
		batch.Abandon()
	}
}

func sameSet(a, b []uuid.UUID) bool {
	order := func(x, y uuid.UUID) int { return slices.Compare(x[:], y[:]) }
	return slices.Equal(slices.SortedFunc(slices.Values(a), order), slices.SortedFunc(slices.Values(b), order))
}

// TestSubscriptions has one from the oldest event and one from now, each with cursors of
// its own, while a transaction that began before both is still open.
func TestSubscriptions(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{})
	stream := pgstream.Stream{}
	open, err := h.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = open.Rollback(t.Context()) }()
	late := insert(t, open, "late", "")
	before := emit(t, h.pool, "a", "b", "c", "")
	for name, start := range map[string]pgstream.Start{"old": pgstream.StartOldest, "new": pgstream.StartNow} {
		if err := stream.CreateSubscription(t.Context(), h.pool, pgstream.Subscription{Name: name}, start); err != nil {
			t.Fatal(err)
		}
	}
	after := emit(t, h.pool, "a", "d", "")
	if err := open.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	old := drain(t, h.open(t, pgstream.Config{Subscription: "old"}))
	if want := slices.Concat(before, after, late); !sameSet(old, want) {
		t.Errorf("from the oldest: %v, want %v", old, want)
	}
	// What had not been committed when it was made is new to it.
	fresh := drain(t, h.open(t, pgstream.Config{Subscription: "new"}))
	if want := slices.Concat(after, late); !sameSet(fresh, want) {
		t.Errorf("from now: %v, want %v", fresh, want)
	}

	list, err := stream.Subscriptions(t.Context(), h.pool)
	if err != nil || len(list) != 3 || list[0].Name != "default" || list[1].Name != "new" || list[2].OnDead != pgstream.DeadSkips {
		t.Errorf("the list is %+v: %v", list, err)
	}
	if err := stream.CreateSubscription(t.Context(), h.pool, pgstream.Subscription{Name: "old"}, 0); !errors.Is(err, pgstream.ErrSubscriptionExists) {
		t.Errorf("made twice: %v", err)
	}
	if err := stream.DropSubscription(t.Context(), h.pool, "old", pgstream.Forced()); err != nil {
		t.Fatal(err)
	}
	var left int
	if err := h.pool.QueryRow(t.Context(), `SELECT count(*) FROM outbox_deliveries WHERE subscription = 'old'`).Scan(&left); err != nil || left > 0 {
		t.Errorf("%d deliveries of a dropped subscription are left: %v", left, err)
	}
	if err := stream.DropSubscription(t.Context(), h.pool, "old"); !errors.Is(err, pgstream.ErrNoSubscription) {
		t.Errorf("dropped twice: %v", err)
	}
	if _, err := pgstream.Open(t.Context(), h.pool, stream, pgstream.Config{Subscription: "old"}); !errors.Is(err, pgstream.ErrNoSubscription) {
		t.Errorf("opened after it was dropped: %v", err)
	}
	for _, sub := range []pgstream.Subscription{{}, {Name: "a\n"}, {Name: "x", OnDead: "maybe"}} {
		if err := stream.CreateSubscription(t.Context(), h.pool, sub, 0); err == nil {
			t.Errorf("%+v was made", sub)
		}
	}
}

func TestSubscriptionOnEmptyStreamFromNow(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{})
	if err := (pgstream.Stream{}).CreateSubscription(t.Context(), h.pool, pgstream.Subscription{Name: "new"}, pgstream.StartNow); err != nil {
		t.Fatal(err)
	}
	want := emit(t, h.pool, "a", "b")
	if got := drain(t, h.open(t, pgstream.Config{Subscription: "new"})); !sameSet(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSubscriptionFilter(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{})
	tenant := uuid.New()
	filters := map[string]pgstream.Filter{
		"namespace": {Namespace: "n"}, "topics": {Topics: []string{"x", "y"}}, "types": {Types: []string{"paid"}},
		"tenant": {TenantID: tenant}, "both": {Topics: []string{"y"}, Types: []string{"paid"}}, "none": {Namespace: "nowhere"},
	}
	for name, filter := range filters {
		sub := pgstream.Subscription{Name: name, Filter: filter}
		if err := (pgstream.Stream{}).CreateSubscription(t.Context(), h.pool, sub, pgstream.StartOldest); err != nil {
			t.Fatal(err)
		}
	}
	row := func(namespace *string, topic, kind string, tenant *uuid.UUID) uuid.UUID {
		id := uuid.New()
		pgtest.Exec(t, h.pool, `INSERT INTO outbox_stream (shard, id, namespace, topic, type, tenant_id, payload)
			VALUES (outbox_shard(NULL, $1), $1, $2, $3, $4, $5, '{}')`, id, namespace, topic, kind, tenant)
		return id
	}
	n := "n"
	a := row(&n, "x", "made", nil)
	b := row(nil, "y", "paid", &tenant)
	c := row(nil, "z", "paid", nil)
	for name, want := range map[string][]uuid.UUID{
		"namespace": {a}, "topics": {a, b}, "types": {b, c}, "tenant": {b}, "both": {b}, "none": nil, "default": {a, b, c},
	} {
		store := h.open(t, pgstream.Config{Subscription: name})
		if stats, err := store.Stats(t.Context()); err != nil || stats.Due != int64(len(want)) {
			t.Errorf("%s: %d events are due, want %d: %v", name, stats.Due, len(want), err)
		}
		if got := drain(t, store); !sameSet(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
		if stats, err := store.Stats(t.Context()); err != nil || stats != (outbox.Stats{}) {
			t.Errorf("%s: afterwards %+v: %v", name, stats, err)
		}
	}
}

// TestSubscriptionHalfMade has a subscription from now whose making broke off before it had a place to begin at. It would
// deliver the whole stream.
func TestSubscriptionHalfMade(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{})
	emit(t, h.pool, "a")
	if err := (pgstream.Stream{}).CreateSubscription(t.Context(), h.pool, pgstream.Subscription{Name: "half"}, pgstream.StartNow); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, h.pool, `UPDATE outbox_subscriptions SET ready = false WHERE name = 'half'`)
	if _, err := pgstream.Open(t.Context(), h.pool, pgstream.Stream{}, pgstream.Config{Subscription: "half"}); !errors.Is(err, pgstream.ErrHalfMade) {
		t.Errorf("a subscription that was not made to the end was opened: %v", err)
	}
}
