package outbox_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
)

// memStore is a store in memory, for tests on a bubble's clock, which no database can follow. The first field changes
// its traits, the functions its behaviour.
type memStore struct {
	traits outbox.Traits
	// oneOut makes it hand out one message at a time: no other before that one is settled.
	oneOut bool
	// unblocks makes its batches report that there is more to claim after each of them.
	unblocks bool
	// onClaim, onSettle and onRenew, if not nil, are called first and may fail.
	onClaim  func(ctx context.Context) error
	onSettle func(ctx context.Context, outcomes []outbox.Outcome) error
	onRenew  func() error
	// It reports lost for every settle, swept for every sweep, reclaimed for every claim that takes something, and
	// exhausted for the first claim.
	lost      []uuid.UUID
	swept     int64
	reclaimed int
	exhausted []outbox.Message

	mu       sync.Mutex
	waiting  []shelved
	out      int
	outcomes []string // of every batch that was settled, in words
}

type shelved struct {
	outbox.Message
	due time.Time
}

func newMemStore(messages ...outbox.Message) *memStore {
	s := &memStore{traits: outbox.Traits{Name: "memory", Lease: 3 * time.Hour, Backoff: true, Exclusive: true}}
	s.add(messages...)
	return s
}

func (s *memStore) add(messages ...outbox.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, message := range messages {
		s.waiting = append(s.waiting, shelved{message, time.Now()})
	}
}

// settled returns the outcomes of each batch so far.
func (s *memStore) settled() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.outcomes)
}

func (s *memStore) Claim(ctx context.Context, request outbox.ClaimRequest) (outbox.Batch, error) {
	n := request.Limit
	if s.onClaim != nil {
		if err := s.onClaim(ctx); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	batch := &memBatch{store: s, exhausted: s.exhausted}
	s.exhausted = nil
	if s.oneOut {
		n = 1 - s.out
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(m shelved) bool {
		if len(batch.messages) == n || m.due.After(time.Now()) || slices.Contains(request.Except, m.ID) || slices.Contains(request.Closed.Topics, m.Topic) {
			return false
		}
		batch.messages = append(batch.messages, m.Message)
		return true
	})
	s.out += len(batch.messages)
	return batch, nil
}

func (s *memStore) Sweep(context.Context) (int64, error)               { return s.swept, nil }
func (s *memStore) Purge(context.Context, outbox.Purge) (int64, error) { return 0, nil }
func (s *memStore) Traits() outbox.Traits                              { return s.traits }

func (s *memStore) Stats(context.Context) (stats outbox.Stats, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats.Held = int64(s.out)
	for i := range s.waiting {
		if s.waiting[i].due.After(time.Now()) {
			stats.Retrying++
		} else {
			stats.Due++
		}
	}
	return stats, nil
}

type memBatch struct {
	store               *memStore
	messages, exhausted []outbox.Message
}

func (b *memBatch) Messages() []outbox.Message  { return b.messages }
func (b *memBatch) Exhausted() []outbox.Message { return b.exhausted }
func (b *memBatch) Unblocked() bool             { return b.store.unblocks }

func (b *memBatch) Renew(context.Context) error {
	if b.store.onRenew == nil {
		return nil
	}
	return b.store.onRenew()
}

func (b *memBatch) Reclaimed() int { return min(b.store.reclaimed, len(b.messages)) }

func (b *memBatch) Settle(ctx context.Context, outcomes []outbox.Outcome) ([]uuid.UUID, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if b.store.onSettle != nil {
		if err := b.store.onSettle(ctx, outcomes); err != nil {
			return nil, err
		}
	}
	b.store.mu.Lock()
	defer b.store.mu.Unlock()
	b.store.outcomes = append(b.store.outcomes, kinds(outcomes))
	b.store.out -= len(b.messages)
	for i, message := range b.messages {
		switch outcomes[i].Kind {
		case outbox.Failed:
			message.Attempt++
			due := time.Now()
			if b.store.traits.Backoff {
				due = due.Add(outcomes[i].Delay)
			}
			b.store.waiting = append(b.store.waiting, shelved{message, due})
		case outbox.Released, outbox.Stopped:
			b.store.waiting = append(b.store.waiting, shelved{message, time.Now().Add(outcomes[i].Delay)})
		}
	}
	b.messages = nil
	return b.store.lost, nil
}

// Abandon puts back what was not settled.
func (b *memBatch) Abandon() {
	b.store.mu.Lock()
	b.store.out -= len(b.messages)
	b.store.mu.Unlock()
	b.store.add(b.messages...)
}

// many returns messages that survive some failures.
func many(n int) []outbox.Message {
	list := keyed(make([]string, n)...)
	for i := range list {
		list[i].MaxAttempts = 1000
	}
	return list
}

// pauses checks the times between moments against the longest that each may be. Jitter takes off at most half, and
// the relay's next poll adds a little.
func pauses(t *testing.T, moments <-chan time.Time, longest ...time.Duration) {
	t.Helper()
	const look = 20 * time.Millisecond
	last := <-moments
	for i, most := range longest {
		next := <-moments
		if pause := next.Sub(last); pause < most/2 || pause > most+look {
			t.Errorf("pause %d took %s, want between %s and %s", i+1, pause, most/2, most)
		}
		last = next
	}
}
