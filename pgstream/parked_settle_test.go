package pgstream

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

// claimRetried claims an event of key k for the second time: it has failed before, and is parked.
func (s *stage) claimRetried(store *Store) (batch outbox.Batch, id uuid.UUID) {
	s.Helper()
	s.emit("k")
	s.settle(s.claim(store, 1), failedFor(time.Hour))
	s.ripen()
	store.PassTime()
	batch = s.claim(store, 1)
	return batch, batch.Messages()[0].ID
}

// hold and release are what a person does with an event of the default subscription.
func (s *stage) hold(id uuid.UUID) {
	s.Helper()
	if held, err := (Stream{}).Hold(s.Context(), s.pool, DefaultSubscription, id); err != nil || len(held) != 1 {
		s.Fatalf("held %v: %v", held, err)
	}
}

func (s *stage) release(id uuid.UUID) {
	s.Helper()
	if _, err := (Stream{}).Release(s.Context(), s.pool, DefaultSubscription, id); err != nil {
		s.Fatal(err)
	}
}

// TestParkedSettleOfALostShard has a relay publish a parked event, and lose its shard meanwhile. What becomes of the
// event is up to the new owner, who is publishing it, too.
func TestParkedSettleOfALostShard(t *testing.T) {
	t.Parallel()
	for name, outcome := range map[string]outbox.Outcome{"delivered": delivered, "failed": failedFor(time.Hour), "dead": diedNow} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sharedStage(t, 1)
			stale, id := s.claimRetried(s.open(Config{}))
			owner := s.takeOver()
			batch := s.claim(owner, 1)
			s.wantIDs(batch, id)
			if lost := s.settle(stale, outcome); len(lost) != 1 || lost[0] != id {
				t.Errorf("the relay that lost the shard was told that %v was lost, want %v", lost, id)
			}
			var attempts int
			var state string
			err := s.pool.QueryRow(t.Context(), `SELECT coalesce(max(attempts), 0), coalesce(max(state), 'gone') FROM outbox_parked`).Scan(&attempts, &state)
			if err != nil || state != stateRetry || attempts != 1 {
				t.Errorf("the relay that lost the shard left the new owner's event %s after %d attempts: %v", state, attempts, err)
			}
			s.settleEach(batch, failedNow)
			s.drainParked(owner)
			s.judge("")
		})
	}
}

// TestHeldWhileTried has a person hold an event that is being published. It may still be delivered; a failure must
// not take the hold back.
func TestHeldWhileTried(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		outcome outbox.Outcome
		want    []string
	}{
		"delivered": {delivered, nil},
		"failed":    {failedNow, []string{stateHeld}},
		"dead":      {diedNow, []string{stateHeld}},
		"released":  {released, []string{stateHeld}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sharedStage(t, 1)
			store := s.open(Config{})
			batch, id := s.claimRetried(store)
			s.hold(id)
			s.settleEach(batch, c.outcome)
			s.wantParked(c.want...)
			s.drainParked(store)
			s.wantParked(c.want...) // nobody tries it again
			s.release(id)
			s.drainParked(store)
			s.judge("")
		})
	}
}

// TestPersonBesideAParkedSettle has a person's transaction open, with an event in it that a relay has just delivered.
// The settle waits for it, or it would not find the row that the person has written anew, and the event would be
// published again.
func TestPersonBesideAParkedSettle(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	store := s.open(Config{})
	batch, id := s.claimRetried(store)
	s.publish(batch)
	settled := make(chan error, 1)
	err := pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
		held, err := (Stream{}).Hold(t.Context(), tx, DefaultSubscription, id)
		if err != nil || len(held) != 1 {
			t.Errorf("held %v: %v", held, err)
			return err
		}
		go func() {
			_, err := batch.Settle(t.Context(), []outbox.Outcome{delivered})
			settled <- err
		}()
		pgtest.AwaitBlocked(t, s.pool, 1)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-settled; err != nil {
		t.Fatal(err)
	}
	batch.Abandon()
	s.wantParked()
	s.release(id)
	s.drainParked(store)
	s.judge("")
}

// TestWaitsBehindWhatIsGone has an event parked behind another of its key that is delivered before that is written.
// It must not wait: there is nobody left to make it due.
func TestWaitsBehindWhatIsGone(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	store := s.open(Config{})
	s.emit("k")
	s.settle(s.claim(store, 1), failedFor(time.Hour))
	s.emit("k", "other")
	page := s.claimAll(store, 1) // k is in it, and waits
	s.ripen()
	store.PassTime()
	s.deliver(s.claim(store, 1))
	s.deliver(page)
	s.wantParked(stateRetry)
	s.drainParked(store)
	s.judge("")
}

// TestReleasedInTheMiddle has a person release an event that others of its key are before. It is not its turn yet.
func TestReleasedInTheMiddle(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	store := s.open(Config{})
	ids := s.emit("k", "k", "k")
	s.settleEach(s.claim(store, 3), failedFor(time.Hour), released, released)
	s.hold(ids[1])
	s.release(ids[1])
	s.wantParked(stateRetry, stateRetry, stateWaiting)
	s.drainParked(store)
	if len(s.published) > 0 {
		t.Errorf("%d events overtook the first of their key", len(s.published))
	}
	s.ripen()
	s.drainParked(store)
	s.judge("")
}

// TestPersonOfOneSubscription has the same event dead in two subscriptions: what a person does in one leaves the other
// alone.
func TestPersonOfOneSubscription(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	if err := (Stream{}).CreateSubscription(t.Context(), s.pool, Subscription{Name: "other"}, StartOldest); err != nil {
		t.Fatal(err)
	}
	id := s.emit("k")[0]
	for _, name := range []string{DefaultSubscription, "other"} {
		s.settle(s.claim(s.open(Config{Subscription: name}), 1), diedNow)
	}
	state := func(name, want string) {
		t.Helper()
		var got string
		if err := s.pool.QueryRow(t.Context(), `SELECT state FROM outbox_parked WHERE subscription = $1`, name).Scan(&got); err != nil || got != want {
			t.Errorf("in subscription %s the event is %s, want %s: %v", name, got, want, err)
		}
	}
	type change func(Stream, string) ([]uuid.UUID, error)
	for _, c := range []struct {
		do   change
		want string
	}{
		{func(s2 Stream, name string) ([]uuid.UUID, error) { return s2.Retry(t.Context(), s.pool, name, id) }, stateRetry},
		{func(s2 Stream, name string) ([]uuid.UUID, error) { return s2.Hold(t.Context(), s.pool, name, id) }, stateHeld},
		{func(s2 Stream, name string) ([]uuid.UUID, error) { return s2.Release(t.Context(), s.pool, name, id) }, stateRetry},
	} {
		if changed, err := c.do(Stream{}, "other"); err != nil || len(changed) != 1 {
			t.Errorf("changed %v, want one event: %v", changed, err)
		}
		state("other", c.want)
		state(DefaultSubscription, stateDead)
	}
}

// TestHeldBehindTheFirst has a person hold an event in the middle of a key whose first one is due, and brings those that
// wait behind it along. Neither the held one nor what waits behind that comes with it.
func TestHeldBehindTheFirst(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	store := s.open(Config{})
	ids := s.emit("k", "k", "k", "k", "k")
	s.settleEach(s.claim(store, 5), failedFor(time.Hour), released, released, released, released)
	s.hold(ids[3])
	s.ripen()
	store.PassTime()
	s.deliver(s.claimAll(store, 1))
	store.PassTime()
	run := s.claimAll(store, 2) // the one that is due now, and the one that may follow it
	s.wantIDs(run, ids[1], ids[2])
	s.deliver(run)
	s.drainParked(store)
	s.wantParked(stateHeld, stateWaiting)
	s.release(ids[3])
	s.drainParked(store)
	s.judge("")
}

// TestReconnectBesideParkedEvents has a relay lose its reader while it publishes a parked event. The settle must still
// be its own: a shard that is read again meanwhile gets a new fence.
func TestReconnectBesideParkedEvents(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	store := s.open(Config{})
	batch, id := s.claimRetried(store)
	s.publish(batch)
	store.reading <- struct{}{}
	store.disconnect()
	store.doneReading()
	s.claimAll(store, 0)
	if lost := s.settle(batch); len(lost) > 0 {
		t.Errorf("a reader that reconnected took %v away from who was publishing it, and had published %v", lost, id)
	}
	s.emit("k")
	s.drainParked(store)
	s.judge("")
}

// TestParkedEventsOfALostShard has a relay read parked events, and lose their shard before it hands them out. They are
// the new owner's.
func TestParkedEventsOfALostShard(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	store := s.open(Config{})
	s.emit("k")
	s.settle(s.claim(store, 1), failedFor(time.Hour))
	s.emit("other")
	page := s.claim(store, 1)
	store.AwaitReadAhead()
	s.ripen()
	store.PassTime()
	store.reading <- struct{}{}
	err := store.prepare(t.Context(), 10)
	store.doneReading()
	if err != nil || store.parked == nil {
		t.Fatalf("nothing was read ahead: %v", err)
	}
	s.drainParked(s.takeOver())
	if err := page.Renew(t.Context()); !errors.Is(err, outbox.ErrLeaseLost) {
		t.Fatalf("the shard is still its own: %v", err)
	}
	s.claimAll(store, 0)
	if lost := s.settle(page); len(lost) != 1 {
		t.Errorf("%d events were lost, want the one that was out", len(lost))
	}
	s.judge("")
}
