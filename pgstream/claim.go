package pgstream

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
)

const (
	// claimRounds bounds how often one claim looks on after windows that held nothing.
	claimRounds = 3
	// parkedEvery is the shortest time between two batches of parked events while the stream
	// flows, and parkedStep their size: thousands of failing keys must not slow the rest.
	parkedEvery = 50 * time.Millisecond
	parkedStep  = 100
	// lookEvery is how often parked events are looked for that others may have made due.
	lookEvery = 2 * time.Second
)

// Claim takes the next pages of one or more shards, up to n events, or parked events that are
// due. Pages of one shard are strictly one after the other; the next is read meanwhile.
func (s *Store) Claim(ctx context.Context, n int) (outbox.Batch, error) {
	var exhausted []outbox.Message
	for range claimRounds {
		if batch := s.next(n); batch != nil {
			s.readAhead(ctx, n)
			return withExhausted(batch, exhausted), nil
		}
		more, dead, err := s.advance(ctx, n)
		exhausted = append(exhausted, dead...)
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
	}
	if batch := s.next(n); batch != nil {
		return withExhausted(batch, exhausted), nil
	}
	return emptyBatch{exhausted: exhausted}, nil
}

// next hands out what has been read: pages of as many shards as fit, in turn.
func (s *Store) next(n int) outbox.Batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	if parked := s.parked; parked != nil {
		s.parked, s.draining = nil, true
		return parked
	}
	var batch *pageBatch
	for _, sh := range s.inTurn() {
		if !sh.ready() {
			continue
		}
		if batch == nil {
			sh.split(n)
		}
		part := sh.part()
		if part.count == 0 {
			continue // nothing to publish: advance settles it
		}
		if batch == nil {
			batch = &pageBatch{store: s}
		} else if len(batch.messages)+part.count > n {
			break
		}
		batch.add(part)
		sh.out = true
		s.turn = sh.number
	}
	if batch == nil {
		return nil
	}
	return batch
}

// inTurn lists the shards, beginning after the one that was served last.
func (s *Store) inTurn() []*shard {
	list := make([]*shard, 0, len(s.shards))
	for _, sh := range s.sorted() {
		if sh.number > s.turn {
			list = append(list, sh)
		}
	}
	for _, sh := range s.sorted() {
		if sh.number <= s.turn {
			list = append(list, sh)
		}
	}
	return list
}

// readAhead reads on in the background, if nobody reads.
func (s *Store) readAhead(ctx context.Context, n int) {
	select {
	case s.reading <- struct{}{}:
	default:
		return
	}
	if s.reader == nil || !s.hasRoom() {
		<-s.reading
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.config.Lease)
	go func() {
		defer cancel()
		defer func() { <-s.reading }()
		if err := s.readPages(ctx, n); err != nil {
			s.disconnect()
			s.mu.Lock()
			s.readErr = err
			s.mu.Unlock()
		}
	}()
}

// advance makes something ready, if there is anything. Only one caller reads at a time; one
// that had to wait finds what the other has read.
func (s *Store) advance(ctx context.Context, n int) (more bool, exhausted []outbox.Message, err error) {
	select {
	case s.reading <- struct{}{}:
	case <-ctx.Done():
		return false, nil, ctx.Err()
	}
	defer func() { <-s.reading }()
	if err := s.takeReadErr(); err != nil {
		return false, nil, err
	}
	more, exhausted, err = s.step(ctx, n)
	if err != nil {
		s.disconnect()
	}
	return more, exhausted, err
}

func (s *Store) takeReadErr() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.readErr
	s.readErr = nil
	return err
}

// step does whatever is due: leases, parked events, pages, and when all that was read is
// settled, new windows.
func (s *Store) step(ctx context.Context, n int) (more bool, exhausted []outbox.Message, err error) {
	if err := s.connect(ctx); err != nil {
		return false, nil, err
	}
	now := time.Now()
	s.mu.Lock()
	tend := !now.Before(s.tendAt)
	s.mu.Unlock()
	if tend {
		if err := s.tend(ctx); err != nil {
			return false, nil, err
		}
	}
	if err := s.reload(ctx); err != nil {
		return false, nil, err
	}
	looked, exhausted, err := s.look(ctx, n, now)
	if err != nil {
		return false, exhausted, err
	}
	if err := s.readPages(ctx, n); err != nil {
		return false, exhausted, err
	}
	if !looked && !s.hasReady() {
		opened, err := s.openWindows(ctx)
		if err != nil || !opened {
			return false, exhausted, err
		}
		if err := s.readPages(ctx, n); err != nil {
			return false, exhausted, err
		}
	}
	passed, err := s.passSilent(ctx)
	return looked || passed || s.hasReady(), exhausted, err
}

// passSilent settles pages that hold nothing to publish: they are empty, or all their events
// wait. Nobody else would.
func (s *Store) passSilent(ctx context.Context) (passed bool, err error) {
	s.mu.Lock()
	batch := &pageBatch{store: s}
	for _, sh := range s.sorted() {
		if !sh.ready() {
			continue
		}
		if part := sh.part(); part.count == 0 {
			batch.add(part)
			sh.out = true
		}
	}
	s.mu.Unlock()
	if len(batch.parts) == 0 {
		return false, nil
	}
	defer batch.Abandon()
	_, err = batch.Settle(ctx, nil)
	return true, err
}

// hasReady reports whether a page can be handed out.
func (s *Store) hasReady() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sh := range s.shards {
		if sh.ready() {
			return true
		}
	}
	return false
}

// emptyBatch is the batch of a claim that found nothing to publish.
type emptyBatch struct {
	exhausted []outbox.Message
}

// withExhausted adds events that were found with their attempts used up.
func withExhausted(batch outbox.Batch, exhausted []outbox.Message) outbox.Batch {
	if len(exhausted) == 0 {
		return batch
	}
	return exhaustedBatch{Batch: batch, exhausted: exhausted}
}

type exhaustedBatch struct {
	outbox.Batch
	exhausted []outbox.Message
}

func (b exhaustedBatch) Exhausted() []outbox.Message { return b.exhausted }

func (b emptyBatch) Messages() []outbox.Message  { return nil }
func (b emptyBatch) Exhausted() []outbox.Message { return b.exhausted }
func (b emptyBatch) Reclaimed() int              { return 0 }
func (b emptyBatch) Renew(context.Context) error { return nil }
func (b emptyBatch) Abandon()                    {}
func (b emptyBatch) Settle(context.Context, []outbox.Outcome) ([]uuid.UUID, error) {
	return nil, nil
}
