package pgstream

import (
	"context"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
)

// withExhausted adds events that were found with their attempts used up.
func (s *Store) withExhausted(batch outbox.Batch) outbox.Batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.exhausted) == 0 {
		return batch
	}
	exhausted := s.exhausted
	s.exhausted = nil
	return exhaustedBatch{Batch: batch, exhausted: exhausted}
}

type exhaustedBatch struct {
	outbox.Batch
	exhausted []outbox.Message
}

func (b exhaustedBatch) Exhausted() []outbox.Message { return b.exhausted }

// Unblocked asks the batch itself.
func (b exhaustedBatch) Unblocked() bool {
	unblocker, ok := b.Batch.(outbox.Unblocker)
	return ok && unblocker.Unblocked()
}

// emptyBatch is the batch of a claim that found nothing to publish.
type emptyBatch struct{}

func (b emptyBatch) Messages() []outbox.Message  { return nil }
func (b emptyBatch) Exhausted() []outbox.Message { return nil }
func (b emptyBatch) Reclaimed() int              { return 0 }
func (b emptyBatch) Renew(context.Context) error { return nil }
func (b emptyBatch) Abandon()                    {}
func (b emptyBatch) Settle(context.Context, []outbox.Outcome) ([]uuid.UUID, error) {
	return nil, nil
}
