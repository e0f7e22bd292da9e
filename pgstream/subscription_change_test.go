package pgstream

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// onDead changes what a dead event does to its key.
func (s *stage) onDead(policy OnDead) {
	s.Helper()
	s.alter(func(sub *Subscription) { sub.OnDead = policy })
}

// TestDeadBlocksNoMore alters the policy while a key waits behind a dead event: it goes on.
func TestDeadBlocksNoMore(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	s.onDead(DeadBlocks)
	store := s.open(Config{})
	ids := s.emit("k", "k")
	s.settle(s.claim(store, 1), diedNow)
	s.drain(store)
	s.wantPublished()
	s.onDead(DeadSkips)
	ids = append(ids, s.emit("k")...)
	store.PassTime()
	s.drain(store)
	s.wantPublished(ids[1:]...)
	store.AwaitReadAhead()
	if len(store.shards[0].gated) > 0 {
		t.Errorf("keys wait behind nothing: %v", store.shards[0].gated)
	}
}

// TestDeadOfAnUnawareRelay has a relay that settles a dead event by the old policy after it was
// altered. The sweep frees its key.
func TestDeadOfAnUnawareRelay(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	s.onDead(DeadBlocks)
	store := s.open(Config{})
	ids := s.emit("k", "k", "k")
	batch := s.claim(store, 1)
	s.onDead(DeadSkips)
	s.settle(batch, diedNow)
	// The next page waits behind it: the store does not know better.
	store.PassTime()
	store.AwaitReadAhead()
	s.drain(store)
	store.PassTime()
	if _, err := store.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.drain(store)
	s.wantPublished(ids[1:]...)
	s.wantParked("dead")
}

// TestDeadBeginsToBlock alters the policy the other way: events that are dead already block
// nothing, those that die from now on do.
func TestDeadBeginsToBlock(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	store := s.open(Config{})
	s.emit("old")
	s.settle(s.claim(store, 1), diedNow)
	s.onDead(DeadBlocks)
	store.PassTime()
	want := s.emit("old")
	s.drain(store)
	s.emit("new")
	s.settle(s.claim(store, 1), diedNow)
	s.emit("new")
	if _, err := store.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.drain(store)
	s.wantPublished(want...)
}

// TestDropServed drops a subscription that a relay serves.
func TestDropServed(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	store := s.open(Config{})
	s.idle(store)
	err := (Stream{}).DropSubscription(t.Context(), s.pool, DefaultSubscription)
	if !errors.Is(err, ErrSubscriptionServed) || !strings.Contains(err.Error(), store.host) {
		t.Errorf("a subscription that is served was dropped: %v", err)
	}
	if err := store.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := (Stream{}).DropSubscription(t.Context(), s.pool, DefaultSubscription); err != nil {
		t.Errorf("a subscription that nobody serves was not dropped: %v", err)
	}
}

// TestAlterServedByAnEarlierProgram has a relay that does not say which generation it serves.
func TestAlterServedByAnEarlierProgram(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	s.exec(`INSERT INTO outbox_relays (subscription, worker, host, pid, alive_until)
		VALUES ('default', gen_random_uuid(), 'old.example', 7, now() + interval '1 minute')`)
	change := func(sub *Subscription) { sub.Destination = "stdout:" }
	if _, err := (Stream{}).AlterSubscription(t.Context(), s.pool, DefaultSubscription, change); !errors.Is(err, ErrSubscriptionServed) ||
		!strings.Contains(err.Error(), "old.example") {
		t.Errorf("a subscription that an earlier program serves was altered: %v", err)
	}
	altered, err := (Stream{}).AlterSubscription(t.Context(), s.pool, DefaultSubscription, change, Forced())
	if err != nil || altered.Destination != "stdout:" {
		t.Errorf("forced: %+v: %v", altered, err)
	}
	if _, err := (Stream{}).AlterSubscription(t.Context(), s.pool, "nobody", change); !errors.Is(err, ErrNoSubscription) {
		t.Errorf("a subscription that is not there was altered: %v", err)
	}
	if _, err := (Stream{}).AlterSubscription(t.Context(), s.pool, DefaultSubscription, func(sub *Subscription) { sub.OnDead = "maybe" }, Forced()); err == nil {
		t.Error("a policy that there is not was taken")
	}
}

// dying ends a program before its nth statement.
type dying struct {
	kill context.CancelFunc
	left int
}

func (d *dying) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	if d.left--; d.left == 0 {
		d.kill()
	}
	return ctx
}

func (d *dying) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TestMakingBreaksOff ends the program between the steps of a new subscription, at each of them. It
// is there or it is not, or it is half made: then it holds no events, everybody is told what to do,
// and it can be dropped.
func TestMakingBreaksOff(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 2)
	store := s.open(Config{})
	slot := s.oldSlot()
	s.begin().insertInto(slot, "k", nil).commit()
	s.drain(store)
	halves, made := 0, 0
	for step := 1; made == 0; step++ {
		sub := Subscription{Name: "half"}
		if err := s.makeUntil(step, sub); err == nil {
			made++
		}
		list, err := (Stream{}).Subscriptions(t.Context(), s.pool)
		if err != nil {
			t.Fatal(err)
		}
		list = slices.DeleteFunc(list, func(sub Subscription) bool { return !sub.HalfMade })
		if len(list) == 0 {
			continue
		}
		halves++
		if !list[0].HalfMade || list[0].Name != sub.Name {
			t.Errorf("the list is %+v", list)
		}
		if err := (Stream{}).CreateSubscription(t.Context(), s.pool, sub, StartNow); !errors.Is(err, ErrHalfMade) {
			t.Errorf("made again: %v", err)
		}
		if _, err := Open(t.Context(), s.pool, Stream{}, Config{Subscription: sub.Name}); !errors.Is(err, ErrHalfMade) {
			t.Errorf("opened: %v", err)
		}
		if _, err := (Stream{}).AlterSubscription(t.Context(), s.pool, sub.Name, func(*Subscription) {}); !errors.Is(err, ErrHalfMade) {
			t.Errorf("altered: %v", err)
		}
		if behind := s.empty(store, *slot); len(behind) > 0 {
			t.Errorf("the slot is kept for %v", behind)
		}
		if err := (Stream{}).DropSubscription(t.Context(), s.pool, sub.Name); err != nil {
			t.Fatal(err)
		}
	}
	if halves == 0 {
		t.Error("no step left half a subscription")
	}
}

// makeUntil makes a subscription from now, in a program that ends before a step.
func (s *stage) makeUntil(step int, sub Subscription) error {
	s.Helper()
	config := s.pool.Config()
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	tracer := &dying{kill: cancel, left: step}
	config.ConnConfig.Tracer = tracer
	pool, err := pgxpool.NewWithConfig(s.Context(), config)
	if err != nil {
		s.Fatal(err)
	}
	defer pool.Close()
	return (Stream{}).CreateSubscription(ctx, pool, sub, StartNow)
}

// TestDroppedBeforeReady drops a subscription while it is being made.
func TestDroppedBeforeReady(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	ctx := t.Context()
	var generation int64
	var shards int
	sub := Subscription{Name: "x", OnDead: DeadSkips}
	row := s.pool.QueryRow(ctx, (Stream{}).names(createSQL), append(sub.columns(), [16]byte(uuid.New()))...)
	if err := row.Scan(&generation, &shards); err != nil {
		t.Fatal(err)
	}
	s.makeAgain(sub)
	if err := (Stream{}).finish(ctx, s.pool, sub.Name, generation); err == nil {
		t.Error("another subscription of the same name was finished")
	}
}

// TestSubscriptionNames are those that a new one can have, and not.
func TestSubscriptionNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "default", "Billing-2.eu_west", "0", strings.Repeat("x", 100)} {
		if err := CheckSubscriptionName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{
		"", ".", "..", "../x", "-x", "_x", "a/b", "a b", "a%2fb", `a"b`, "a'b", "a\n", "é", "a\x00", "a?b", "a#b", strings.Repeat("x", 101),
	} {
		if err := CheckSubscriptionName(name); !errors.Is(err, ErrSubscriptionName) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestNamesOfEarlierPrograms serves, alters and drops subscriptions whose names are refused today.
func TestNamesOfEarlierPrograms(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	want := s.emit("k")
	for _, name := range []string{"a/b", "..", `"q"`, "it's", "ü ?#%2f", "<b>"} {
		s.exec(`INSERT INTO outbox_subscriptions (name) VALUES ($1)`, name)
		s.exec(`INSERT INTO outbox_shards (subscription, shard, s1, q1, hi, pos) VALUES ($1, 0, '1:1:', 0, 0, 0)`, name)
		s.published = nil
		store := s.open(Config{Subscription: name})
		s.drain(store)
		s.wantPublished(want...)
		change := func(sub *Subscription) { sub.Filter.Topics = []string{"other"} }
		if altered, err := (Stream{}).AlterSubscription(t.Context(), s.pool, name, change); err != nil || !slices.Equal(altered.Filter.Topics, []string{"other"}) {
			t.Errorf("%q: altered to %+v: %v", name, altered, err)
		}
		store.Close()
		if err := (Stream{}).DropSubscription(t.Context(), s.pool, name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}
