package pgstream

import (
	"context"
	"slices"
	"time"

	"github.com/packfinderz/outbox"
)

const (
	// claimRounds limits how often a claim reads on after pages without anything to publish.
	claimRounds = 3
	// parkedEvery is the time between two batches of parked events while the stream flows, and parkedStep is their
	// size: thousands of failing keys must not slow the rest.
	parkedEvery = 50 * time.Millisecond
	parkedStep  = 100
	// lookEvery is how often the store looks for parked events that others made due.
	lookEvery = 10 * time.Second
)

// Claim takes the next pages of one or more shards, or parked events that are due. A shard has one page out at a time;
// the next one is read meanwhile.
func (s *Store) Claim(ctx context.Context, request outbox.ClaimRequest) (outbox.Batch, error) {
	s.noteClosed(request.Closed)
	n := request.Limit
	for round := range claimRounds {
		// After a long pause the shards may be another's, and what was read of no use.
		if round > 0 || s.isSure() && !s.owesPages() {
			if batch := s.next(n); batch != nil {
				s.readAhead(ctx, n)
				return batch, nil
			}
		}
		more, err := s.advance(ctx, n)
		if err != nil {
			s.own.Distrust(err)
			return nil, err
		}
		if !more {
			break
		}
	}
	if batch := s.next(n); batch != nil {
		return batch, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return &pageBatch{store: s, events: events{exhausted: s.takeExhausted()}}, nil
}

// isSure reports whether this store certainly still has its leases.
func (s *Store) isSure() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Before(s.sureUntil)
}

// next hands out what has been read: pages of as many shards as fit, in turn.
func (s *Store) next(n int) outbox.Batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Parked events that fail again and again must not keep the stream from being tried.
	if parked := s.parked; parked != nil && (!s.parkedLast || !s.hasPages()) {
		s.parked, s.draining, s.parkedLast = nil, parked, true
		parked.exhausted = s.takeExhausted()
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
		switch {
		case part.count == 0:
			continue // passSilent settles it
		case batch == nil:
			batch = &pageBatch{store: s}
		case len(batch.messages)+part.count > n:
			continue
		}
		batch.add(part)
		sh.out = true
		s.turn = sh.number
	}
	if batch == nil {
		return nil
	}
	s.parkedLast = false
	batch.exhausted = s.takeExhausted()
	return batch
}

// inTurn lists the shards, beginning after the one that was served last.
func (s *Store) inTurn() []*shard {
	list := s.sorted()
	next := max(0, slices.IndexFunc(list, func(sh *shard) bool { return sh.number > s.turn }))
	return slices.Concat(list[next:], list[:next])
}

// readAhead prepares the next claims in the background, unless somebody is reading already.
func (s *Store) readAhead(ctx context.Context, n int) {
	select {
	case s.reading <- struct{}{}:
	default:
		return
	}
	if !s.hasWork(time.Now()) {
		s.doneReading()
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.config.Lease)
	stop := context.AfterFunc(s.life, cancel)
	go func() {
		defer cancel()
		defer stop()
		defer s.doneReading()
		err := s.prepare(ctx, n)
		if err == nil {
			_, err = s.passSilent(ctx)
		}
		if err != nil {
			s.disconnect()
			s.mu.Lock()
			s.readErr = err
			s.mu.Unlock()
		}
	}()
}

// hasWork reports whether a page can be read or passed, or something is due.
func (s *Store) hasWork(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sh := range s.shards {
		if sh.room() || sh.ready() && sh.part().count == 0 {
			return true
		}
	}
	return !now.Before(s.tendAt) || s.mayLook(now) || len(s.opened()) > 0
}

// advance makes something ready, if there is anything. Callers read one at a time; who waited finds what the other read.
func (s *Store) advance(ctx context.Context, n int) (more bool, err error) {
	select {
	case s.reading <- struct{}{}:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	defer s.doneReading()
	if s.life.Err() != nil {
		return false, errClosed
	}
	s.mu.Lock()
	err, s.readErr = s.readErr, nil
	s.mu.Unlock()
	if err != nil {
		return false, err
	}
	if more, err = s.step(ctx, n); err != nil {
		s.disconnect()
	}
	return more, err
}

// doneReading lets others read. In a closed store it gives the reader up: closing the pool waits for its connection.
func (s *Store) doneReading() {
	if s.life.Err() != nil {
		s.disconnect()
	}
	<-s.reading
}

// prepare does whatever is due: leases, cursors that are not known, parked events, pages.
func (s *Store) prepare(ctx context.Context, n int) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	now := time.Now()
	s.mu.Lock()
	tend := !now.Before(s.tendAt)
	s.mu.Unlock()
	if tend {
		if err := s.checkHistory(ctx, now); err != nil {
			return err
		}
		if err := s.tend(ctx); err != nil {
			return err
		}
	}
	if err := s.reload(ctx); err != nil {
		return err
	}
	if err := s.free(ctx, now); err != nil {
		return err
	}
	if err := s.look(ctx, n, now); err != nil {
		return err
	}
	return s.readPages(ctx, n)
}

// step is prepare and, when that made nothing ready, opens new windows.
func (s *Store) step(ctx context.Context, n int) (more bool, err error) {
	if err := s.prepare(ctx, n); err != nil {
		return false, err
	}
	if !s.hasReady() || s.owesPages() {
		opened, err := s.openWindows(ctx, n)
		if err != nil {
			return false, err
		}
		if opened {
			err = s.readPages(ctx, n)
		}
		if err != nil || !s.hasReady() {
			return false, err
		}
	}
	if s.hasLoud() {
		return true, nil // passing the others can wait until these are on their way
	}
	return s.passSilent(ctx)
}

// passSilent settles pages without anything to publish: they are empty, or all their events wait. It reports whether
// there were any events.
func (s *Store) passSilent(ctx context.Context) (passed bool, err error) {
	batch := &pageBatch{store: s}
	s.mu.Lock()
	for _, sh := range s.sorted() {
		if !sh.ready() {
			continue
		}
		if part := sh.part(); part.count == 0 {
			batch.add(part)
			sh.out = true
			passed = passed || len(part.page.places) > 0
		}
	}
	s.mu.Unlock()
	if len(batch.parts) == 0 {
		return false, nil
	}
	defer batch.Abandon()
	_, err = batch.Settle(ctx, nil)
	return passed, err
}

// hasReady reports whether something can be handed out or passed.
func (s *Store) hasReady() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sh := range s.shards {
		if sh.ready() {
			return true
		}
	}
	return s.parked != nil
}

// hasLoud reports whether there is something to publish.
func (s *Store) hasLoud() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parked != nil || s.hasPages()
}

// hasPages reports whether a page with something to publish has been read. The caller holds the lock.
func (s *Store) hasPages() bool {
	for _, sh := range s.shards {
		if sh.ready() && sh.part().count > 0 {
			return true
		}
	}
	return false
}

// owesPages reports whether it is the stream's turn, and nothing of it has been read.
func (s *Store) owesPages() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parked != nil && s.parkedLast && !s.hasPages()
}
