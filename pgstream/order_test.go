package pgstream

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/outboxtest/await"
)

// wantParked fails unless the parked events are in these states, in the order of their seqs.
func (s *stage) wantParked(want ...string) {
	s.Helper()
	rows, err := s.pool.Query(s.Context(), `SELECT state FROM outbox_parked ORDER BY seq`)
	if err != nil {
		s.Fatal(err)
	}
	defer rows.Close()
	var got []string
	for rows.Next() {
		var state string
		if err := rows.Scan(&state); err != nil {
			s.Fatal(err)
		}
		got = append(got, state)
	}
	if rows.Err() != nil || !slices.Equal(got, want) {
		s.Fatalf("parked are %v, want %v: %v", got, want, rows.Err())
	}
}

// TestFailingKey has one event fail twice: the rest of its key waits, other keys flow.
func TestFailingKey(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	store := s.open(Config{})
	s.emit("k", "a", "k")
	s.settleEach(s.claim(store, 3), failedFor(time.Hour), delivered, released)
	s.wantParked("retry", "waiting")
	s.emit("k", "b")
	s.drain(store)
	s.wantParked("retry", "waiting", "waiting")
	if len(s.published) != 2 {
		t.Fatalf("%d events arrived beside the failing key, want 2", len(s.published))
	}
	s.ripen()
	store.PassTime()
	s.settleEach(s.claim(store, 1), failedFor(time.Hour))
	s.wantParked("retry", "waiting", "waiting")
	s.ripen()
	s.drainParked(store)
	s.wantParked()
	s.emit("k")
	s.drain(store)
	s.judge("")
}

// settleEach publishes and settles with these outcomes.
func (s *stage) settleEach(batch outbox.Batch, outcomes ...outbox.Outcome) {
	s.Helper()
	s.publish(batch, outcomes...)
	s.settle(batch, outcomes...)
}

// TestDeadSkips has an event die: what waited behind it goes on, in order.
func TestDeadSkips(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	store := s.open(Config{})
	all := s.emit("k", "k", "k")
	s.settleEach(s.claim(store, 3), diedNow, released, released)
	s.emit("k")
	s.drainParked(store)
	s.wantParked("dead")
	if story := s.story(); len(story[lost]) != 1 || len(story[inverted])+len(story[repeated]) > 0 {
		t.Errorf("one event is dead, and %v", story)
	}
	// Retried by hand, it comes alone.
	if retried, err := store.Retry(t.Context(), all[0]); err != nil || len(retried) != 1 {
		t.Fatalf("retried %v: %v", retried, err)
	}
	s.emit("k")
	s.drainParked(store)
	if story := s.story(); len(story[lost])+len(story[repeated]) > 0 {
		t.Errorf("after the retry: %v", story)
	}
}

// TestDeadBlocks has the key wait until somebody retries the dead event.
func TestDeadBlocks(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	s.exec(`UPDATE outbox_subscriptions SET on_dead = 'block'`)
	store := s.open(Config{})
	all := s.emit("k", "k", "a")
	s.settleEach(s.claim(store, 3), diedNow, released, delivered)
	s.emit("k", "b")
	s.drainParked(store)
	s.wantParked("dead", "waiting", "waiting")
	if len(s.published) != 2 {
		t.Fatalf("%d events arrived beside the blocked key, want 2", len(s.published))
	}
	s.drain(s.takeOver()) // another owner keeps it blocked, too
	if _, err := s.stores[1].Retry(t.Context(), all[0]); err != nil {
		t.Fatal(err)
	}
	s.drainParked(s.stores[1])
	s.wantParked()
	s.judge("")
}

// TestDelayedEvent has an event whose time has not come: its key goes on without it, in the
// same page, in later ones, and at a relay that takes over.
func TestDelayedEvent(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	store := s.open(Config{})
	delayed := s.begin().insert("k")
	if _, err := delayed.tx.Exec(t.Context(), `UPDATE outbox_stream SET not_before = now() + interval '1 hour'`); err != nil {
		t.Fatal(err)
	}
	id := delayed.commit()[0]
	s.emit("k", "k")
	s.drain(store)
	s.wantParked("retry")
	if len(s.published) != 2 {
		t.Fatalf("%d events arrived before the delayed one, want 2", len(s.published))
	}
	s.emit("k")
	s.drain(store)
	if len(s.published) != 3 {
		t.Fatal("an event in a later page waits behind the delayed one")
	}
	s.wantParked("retry")
	s.emit("k")
	store = s.takeOver()
	s.drain(store)
	if len(s.published) != 4 {
		t.Fatal("at another relay an event waits behind the delayed one")
	}
	s.wantParked("retry")
	// Nor does it when it fails.
	s.ripen()
	store.PassTime()
	batch := s.claim(store, 1)
	s.wantIDs(batch, id)
	s.settle(batch, failedFor(time.Hour))
	s.emit("k")
	s.drain(s.takeOver())
	if len(s.published) != 5 {
		t.Fatal("an event waits behind the delayed one that failed")
	}
	s.wantParked("retry")
}

// TestWaitingBehindNothing has a head that somebody left waiting.
func TestWaitingBehindNothing(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	store := s.open(Config{})
	s.emit("k")
	s.settle(s.claim(store, 1), failedFor(time.Hour))
	s.emit("k")
	s.drain(store)
	s.exec(`UPDATE outbox_parked SET state = 'waiting'`)
	if _, err := store.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.drainParked(store)
	s.wantParked()
	s.judge("")
}

// TestBrokerAway releases everything: nothing is parked, and nothing moves.
func TestBrokerAway(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	store := s.open(Config{})
	s.emit("a", "b", "c", "d")
	position := func() (at string) {
		s.scan(`SELECT concat_ws('/', s1, q1, s2, q2, hi, pos) FROM outbox_shards`, &at)
		return at
	}
	var before string
	for range 3 {
		batch := s.claimAll(store, 4)
		if before == "" {
			before = position()
		}
		s.settle(batch, released, released, released, released)
		if after := position(); after != before {
			t.Fatalf("the cursor moved from %s to %s", before, after)
		}
	}
	s.wantParked()
	// What something was delivered behind of is parked, and the page is cut behind that.
	s.settleEach(s.claimAll(store, 4), delivered, released, delivered, released)
	s.wantParked("retry")
	s.drain(store)
	s.judge("")
}

// TestTakeOverOfACutPage has a relay give the rest of a page back and die: its successor begins there.
func TestTakeOverOfACutPage(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	s.emit("a", "b", "c", "d")
	s.settleEach(s.claimAll(s.open(Config{}), 4), delivered, released, released, released)
	s.drain(s.takeOver())
	s.judge("")
}

// TestTakeOverInMidPage has a relay die with a page out: its successor begins where the table
// says, and the stale relay's renewals and settles are refused.
func TestTakeOverInMidPage(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	stale := s.open(Config{})
	all := s.emit("a", "b", "c", "d")
	s.deliver(s.claim(stale, 2))
	out := s.claim(stale, 1)
	owner := s.takeOver()
	batch := s.claim(owner, 2)
	s.wantIDs(batch, all[2], all[3])
	if err := out.Renew(t.Context()); err == nil {
		t.Error("the stale relay could renew its lease")
	}
	if lost := s.settle(out); len(lost) != 1 {
		t.Errorf("the stale relay could settle: %v was lost", lost)
	}
	s.deliver(batch)
	s.drain(stale)
	s.drain(owner)
	s.judge("")
}

// TestSharing lets stores come and go. Every shard has an owner at every time after a claim
// or two of everybody; nobody waits for a lease.
func TestSharing(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 8)
	s.emit("a", "b", "c", "d", "e", "f", "g", "h", "i", "j")
	first, second := s.open(Config{}), s.open(Config{})
	s.wantShares([]*Store{first, second}, 4, 4)
	third := s.open(Config{})
	s.wantShares([]*Store{first, second, third}, 2, 3, 3)
	if err := second.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.wantShares([]*Store{first, third}, 4, 4)
	if err := third.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.wantShares([]*Store{first}, 8)
	s.emit("a", "b", "c", "d", "e", "f", "g", "h", "i", "j")
	s.drain(first)
	s.judge("")
}

// wantShares fails unless the stores have so many shards each, in any order, after two
// rounds of claims: in the first those who have too much hand over, in the second the others
// take.
func (s *stage) wantShares(stores []*Store, want ...int) {
	s.Helper()
	for range 3 {
		for _, store := range stores {
			store.AwaitReadAhead()
			store.PassTime()
			s.drain(store)
			store.AwaitReadAhead()
		}
	}
	var shares []int
	for _, store := range stores {
		numbers, _ := store.owned()
		shares = append(shares, len(numbers))
	}
	var free int
	s.scan(`SELECT count(*) FROM outbox_shards WHERE owner IS NULL OR locked_until < now()`, &free)
	slices.Sort(shares)
	if !slices.Equal(shares, want) || free > 0 {
		s.Fatalf("the shares are %v, want %v; %d shards are free", shares, want, free)
	}
}

// TestHandOverOfABusyShard has the shards that must go out at the time. They go when they
// are settled, and what is published of them is not published again.
func TestHandOverOfABusyShard(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 2)
	first := s.open(Config{})
	for range 4 {
		s.emit("a", "b", "c", "d")
	}
	busy := s.claimAll(first, 16)
	second := s.open(Config{})
	s.idle(second)
	first.AwaitReadAhead()
	first.PassTime()
	s.idle(first)
	s.deliver(busy)
	s.wantShares([]*Store{first, second}, 1, 1)
	s.judge("")
}

// TestHandOverBesideParkedEvents gives a shard up of which parked events are being published: not before they are
// settled, or the next owner would publish them, too.
func TestHandOverBesideParkedEvents(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 2)
	first := s.open(Config{})
	s.emit("a", "b", "c", "d")
	later := failedFor(time.Hour)
	s.settle(s.claimAll(first, 4), later, later, later, later)
	s.ripen()
	first.PassTime()
	busy := s.claimAll(first, 4)
	second := s.open(Config{})
	s.idle(second)
	first.AwaitReadAhead()
	first.PassTime()
	s.idle(first)
	second.PassTime()
	s.claimAll(second, 0)
	s.deliver(busy)
	s.wantShares([]*Store{first, second}, 1, 1)
	s.judge("")
}

// TestManyPoisonedKeys has the rest flow beside thousands of keys that fail. What it costs is
// counted, not timed: the parked events are read when the shards are taken, and not again for
// every page.
func TestManyPoisonedKeys(t *testing.T) {
	t.Parallel()
	const poisoned, flowing = 10_000, 40_000
	s := sharedStage(t, 8)
	s.emitMany("poison", poisoned, poisoned)
	first := s.open(Config{})
	s.pump(first, poisoned, poisonous)
	first.Close()
	before := s.readOfParked()
	s.emitMany("flow", flowing, 500)
	second := s.open(Config{})
	s.pump(second, flowing, poisonous)
	second.Close()
	var read int64
	await.Until(t, "the server to count what was read", func() bool { // before PostgreSQL 15 a while after the session's end
		read = s.readOfParked() - before
		return read >= poisoned
	})
	t.Logf("%d rows of parked events were read while %d others flowed", read, flowing)
	if read > 5*poisoned {
		t.Errorf("%d rows of %d parked events were read while %d others flowed, want each once and little more", read, poisoned, flowing)
	}
}

// readOfParked is how many rows of the parked events have been read by sessions that have ended.
func (s *stage) readOfParked() (rows int64) {
	s.Helper()
	// A session tells what it has read when it ends.
	await.Until(s, "the store's sessions to end", func() (ended bool) {
		s.scan(`SELECT count(*) = 1 FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'`, &ended)
		return ended
	})
	s.scan(`SELECT (SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'outbox_parked')
		+ (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = 'outbox_parked')::bigint`, &rows)
	return rows
}

// emitMany commits n events of so many keys.
func (s *stage) emitMany(prefix string, n, keys int) {
	s.Helper()
	s.exec(`INSERT INTO outbox_stream (shard, id, topic, type, key, payload)
		SELECT outbox_shard($1 || i % $3, NULL), gen_random_uuid(), 'orders', 'made', $1 || i % $3, '{}' FROM generate_series(1, $2) AS i`,
		prefix, n, keys)
}

// poisonous refuses events of poisoned keys, for a minute at a time.
func poisonous(message outbox.Message) outbox.Outcome {
	if message.Key[0] == 'p' {
		return failedFor(time.Minute)
	}
	return delivered
}

// pump claims and settles until so many events have had an answer for the first time.
func (s *stage) pump(store *Store, n int, answer func(outbox.Message) outbox.Outcome) {
	s.Helper()
	seen := make(map[uuid.UUID]struct{}, n)
	for len(seen) < n {
		batch := s.tryClaim(store, 1000)
		outcomes := make([]outbox.Outcome, len(batch.Messages()))
		for i, message := range batch.Messages() {
			outcomes[i] = answer(message)
			if message.Attempt == 1 {
				seen[message.ID] = struct{}{}
			}
		}
		s.settle(batch, outcomes...)
	}
}
