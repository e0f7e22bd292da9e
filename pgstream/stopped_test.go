package pgstream

import (
	"testing"
	"time"

	"github.com/packfinderz/outbox"
)

// stoppedNow is the outcome of an event whose topic, gone, takes nothing.
var stoppedNow = outbox.Outcome{Kind: outbox.Stopped, Topic: "gone", Error: "there is no topic"}

// claimBeside claims while the topic gone is closed, and fails unless n events come.
func (s *stage) claimBeside(store *Store, n int) outbox.Batch {
	s.Helper()
	var batch outbox.Batch
	for range 4 { // one may pass the empty end of a window
		var err error
		store.PassTime()
		batch, err = store.Claim(s.Context(), outbox.ClaimRequest{Limit: 100, Closed: outbox.ClosedRoutes{Topics: []string{"gone"}}})
		if err != nil {
			s.Fatal(err)
		}
		if len(batch.Messages()) > 0 {
			break
		}
	}
	if got := len(batch.Messages()); got != n {
		s.Fatalf("claimed %d events while their topic is closed, want %d", got, n)
	}
	return batch
}

// stop settles a batch that was claimed before the topic was closed. What is read ahead must be over: it
// does not know yet that the topic is closed, and would free the events again.
func (s *stage) stop(store *Store, batch outbox.Batch, outcomes ...outbox.Outcome) {
	s.Helper()
	store.AwaitReadAhead()
	s.publish(batch, outcomes...)
	s.settle(batch, outcomes...)
}

// wantStopped fails unless so many events are stopped, with no attempt counted.
func (s *stage) wantStopped(want int) {
	s.Helper()
	var events, attempts int
	s.scan(`SELECT count(*), coalesce(sum(attempts), 0) FROM outbox_parked WHERE state = 'stopped' AND route = 'gone'`, &events, &attempts)
	if events != want || attempts != 0 {
		s.Fatalf("%d events are stopped, with %d attempts, want %d with none", events, attempts, want)
	}
}

// deliverFirst drains, and fails where an event is not at its first attempt.
func (s *stage) deliverFirst(store *Store) {
	s.Helper()
	for empty := 0; empty < 3; {
		store.PassTime()
		batch := s.tryClaim(store, 100)
		for _, m := range batch.Messages() {
			if m.Attempt != 1 {
				s.Errorf("an event of key %q came at attempt %d, want its first", m.Key, m.Attempt)
			}
		}
		if empty++; len(batch.Messages()) > 0 {
			empty = 0
			s.deliver(batch)
		}
	}
}

// TestStopped has an event whose topic is closed: it is parked, uncounted, with what follows of its key, and
// the others go past it. It comes when the topic is open, and not before.
func TestStopped(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	store := s.open(Config{MaxAttempts: 1})
	s.emit("k", "other", "k")
	s.stop(store, s.claimAll(store, 3), stoppedNow, delivered, released)
	s.wantStopped(1)
	s.emit("k", "more")
	s.deliver(s.claimBeside(store, 1)) // the third of k waits, too
	s.claimBeside(store, 0)
	s.wantStopped(1)
	s.deliverFirst(store)
	s.wantParked()
	s.judge("")
}

// TestStoppedAgain has events freed, and their topic closed again when they are tried.
func TestStoppedAgain(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	store := s.open(Config{MaxAttempts: 1})
	s.emit("k")
	s.stop(store, s.claimAll(store, 1), stoppedNow)
	store.PassTime()
	s.stop(store, s.claim(store, 1), stoppedNow)
	s.wantStopped(1)
	s.claimBeside(store, 0)
	s.deliverFirst(store)
	s.judge("")
}

// TestPassedKeepsItsError has an event given back that others may pass: whoever looks sees why, also when it is
// given back later without a word.
func TestPassedKeepsItsError(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	store := s.open(Config{MaxAttempts: 1})
	s.emit("k")
	want := ""
	for _, text := range []string{"not now", "", "not yet", ""} {
		s.settle(s.claimAll(store, 1), outbox.Outcome{Kind: outbox.Released, Delay: time.Minute, Error: text})
		if text != "" {
			want = text
		}
		var got string
		if s.scan(`SELECT last_error FROM outbox_parked WHERE attempts = 0`, &got); got != want {
			t.Errorf("the error is %q, want %q", got, want)
		}
		s.ripen()
		store.PassTime()
	}
	s.deliverFirst(store)
	s.judge("")
}

// TestStoppedRoom has more events of a closed topic than may be parked: the shard waits for it.
func TestStoppedRoom(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	store := s.open(Config{MaxAttempts: 1, MaxStopped: 3})
	s.emit("", "")
	s.stop(store, s.claimAll(store, 2), stoppedNow, stoppedNow)
	s.emit("", "", "")
	s.stop(store, s.claimBeside(store, 3), stoppedNow, stoppedNow, stoppedNow)
	s.wantStopped(3)
	s.claimBeside(store, 0)
	s.emit("")
	s.claimBeside(store, 0)
	s.wantStopped(3)
	s.deliverFirst(store)
	s.wantParked()
	s.judge("")
}

// TestStoppedTakenOver has a relay die while events of a topic wait. The next one frees them, few at first:
// the topic may be on trial.
func TestStoppedTakenOver(t *testing.T) {
	t.Parallel()
	const events, few = 30, 10
	s := sharedStage(t, 1)
	s.emit(make([]string, events)...)
	store := s.open(Config{MaxAttempts: 1})
	batch := s.claimAll(store, events)
	outcomes := make([]outbox.Outcome, events)
	for i := range outcomes {
		outcomes[i] = stoppedNow
	}
	s.stop(store, batch, outcomes...)
	s.wantStopped(events)
	store = s.takeOver()
	s.claimBeside(store, 0)
	s.wantStopped(events)
	first := s.claimAll(store, few)
	s.claimAll(store, 0) // no more while these are on their way
	store.AwaitReadAhead()
	s.wantStopped(events - few)
	s.deliver(first)
	s.deliverFirst(store)
	s.wantParked()
	s.judge("")
}
