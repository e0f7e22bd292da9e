package pgstream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox"
)

const (
	// tendEvery is the longest time between two renewals of the leases. An idle relay notices only then that others
	// come and go.
	tendEvery = 10 * time.Second
	// hurryEvery is tendEvery for a relay that has less than its share.
	hurryEvery = 50 * time.Millisecond
	// leaveTimeout bounds the good-bye of a relay that stops.
	leaveTimeout = 5 * time.Second
)

// sorted lists the shards by number.
func (s *Store) sorted() []*shard {
	return slices.SortedFunc(maps.Values(s.shards), func(a, b *shard) int { return int(a.number) - int(b.number) })
}

// drop removes a shard that is no longer ours, with its parked events that are not out yet.
func (s *Store) drop(number int16) {
	if sh := s.shards[number]; sh != nil && sh.out {
		s.lost = append(s.lost, sh)
	}
	delete(s.shards, number)
	if s.parked.holds(number) {
		s.parked, s.lookAt = nil, time.Time{}
	}
}

// fenced returns the numbers and fences of shards, as statements take them.
func fenced(shards []*shard) (numbers []int16, fences []int64) {
	for _, sh := range shards {
		numbers, fences = append(numbers, sh.number), append(fences, sh.fence)
	}
	return numbers, fences
}

// tend renews the leases, and takes or gives up shards until this relay has its share.
func (s *Store) tend(ctx context.Context) error {
	now, err := s.heartbeat(ctx)
	if err != nil {
		return err
	}
	if now.generation != s.generation() {
		if err := s.redefine(ctx, s.own); err != nil {
			return err
		}
		if now, err = s.heartbeat(ctx); err != nil {
			return err
		}
	}
	if now.far {
		if err := s.shortenLeases(ctx); err != nil {
			return err
		}
	}
	share := now.share()
	s.mu.Lock()
	have := len(s.shards)
	for _, sh := range s.shards {
		sh.leaving = false
	}
	s.shed(have - share)
	s.mu.Unlock()
	if err := s.handOver(ctx); err != nil {
		return err
	}
	if have < share && now.free > 0 {
		if err := s.takeFree(ctx, share-have); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.relays = now.relays
	s.tendAt = time.Now().Add(min(tendEvery, s.config.Lease/3))
	if len(s.shards) < share {
		// Somebody is about to hand shards over, or to lose them.
		s.tendAt = time.Now().Add(min(hurryEvery, s.config.Lease/6))
	}
	return nil
}

// census is what a relay knows of the others.
type census struct {
	shards, free int
	// relays is how many there are, and rank how many of them come before this one.
	relays, rank int
	// far is set when leases of others end further ahead than they are long.
	far bool
	// generation is that of the subscription's definition.
	generation int64
}

// share is how many shards this relay should have: as many as the others, and one more for the first ones if some are
// left over.
func (c census) share() int {
	share := c.shards / c.relays
	if c.rank < c.shards%c.relays {
		share++
	}
	return share
}

// heartbeat keeps this relay listed and its shards locked, and drops those that are lost.
func (s *Store) heartbeat(ctx context.Context) (now census, err error) {
	s.mu.Lock()
	numbers, fences := fenced(s.sorted())
	s.mu.Unlock()
	sure := time.Now().Add(s.config.Lease)
	var kept []int16
	err = s.own.QueryRow(ctx, s.sql.tend, s.config.Subscription, [16]byte(s.config.WorkerID), s.config.Lease.Seconds(),
		s.host, os.Getpid(), numbers, fences, s.generation()).Scan(&now.relays, &now.rank, &now.shards, &now.free, &kept, &now.far, &now.generation)
	if isDropped(err) {
		return now, &droppedError{s.config.Subscription}
	}
	if err != nil {
		return now, fmt.Errorf("outbox: renew the leases of subscription %q: %w", s.config.Subscription, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sureUntil = sure
	if now.generation != s.generation() {
		s.tendAt = time.Time{} // to read the new definition
	}
	for i, number := range numbers {
		if sh := s.shards[number]; sh != nil && sh.fence == fences[i] && !slices.Contains(kept, number) {
			s.drop(number)
		}
	}
	return now, nil
}

// shed marks shards to be given up, those that are at rest first.
func (s *Store) shed(surplus int) {
	list := s.sorted()
	for _, resting := range []bool{true, false} {
		for _, sh := range list {
			if surplus > 0 && !sh.leaving && sh.out != resting {
				sh.leaving = true
				surplus--
			}
		}
	}
}

// departing are the shards that are leaving and of which nothing is out.
func (s *Store) departing() []*shard {
	var list []*shard
	for _, sh := range s.sorted() {
		if sh.leaving && !sh.out && !s.draining.holds(sh.number) {
			list = append(list, sh)
		}
	}
	return list
}

// handOver gives up the shards that are departing.
func (s *Store) handOver(ctx context.Context) error {
	s.mu.Lock()
	departing := s.departing()
	for _, sh := range departing {
		s.drop(sh.number)
	}
	s.mu.Unlock()
	numbers, fences := fenced(departing)
	if len(numbers) == 0 {
		return nil
	}
	if _, err := s.own.Exec(ctx, s.sql.giveUp, s.config.Subscription, numbers, fences); err != nil {
		return fmt.Errorf("outbox: hand %d shards over: %w", len(numbers), err)
	}
	return nil
}

// takeFree takes up to n shards that nobody has. Each begins at its stored cursor. A shard that this store is still
// publishing from is left to others: its events would be out twice (outbox.Traits.Exclusive).
func (s *Store) takeFree(ctx context.Context, n int) error {
	s.mu.Lock()
	s.lost = slices.DeleteFunc(s.lost, func(sh *shard) bool { return !sh.out })
	numbers, _ := fenced(slices.Concat(s.sorted(), s.lost))
	s.mu.Unlock()
	rows, _ := s.own.Query(ctx, s.sql.take, s.config.Subscription, [16]byte(s.config.WorkerID), s.config.Lease.Seconds(), n, numbers, s.generation())
	if err := s.loadCursors(rows); err != nil {
		return fmt.Errorf("outbox: take shards: %w", err)
	}
	s.mu.Lock()
	s.lookAt, s.recount = time.Time{}, true // they may have parked events that are due
	s.mu.Unlock()
	return nil
}

// loadCursors sets shards to what the table says.
func (s *Store) loadCursors(rows pgx.Rows) error {
	var number int16
	var fence int64
	var c cursor
	_, err := pgx.ForEachRow(rows, []any{&number, &fence, &c.s1, &c.q1, &c.s2, &c.q2, &c.hi, &c.pos, &c.parked}, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		sh := s.shards[number]
		if sh == nil || sh.fence != fence {
			sh = &shard{number: number, fence: fence}
			s.shards[number] = sh
		}
		sh.stale = true
		sh.load(c)
		return nil
	})
	return err
}

// reload reads the cursors and the waiting keys that are not known.
func (s *Store) reload(ctx context.Context) error {
	var unknown []*shard
	s.mu.Lock()
	for _, sh := range s.sorted() {
		if !sh.known && !sh.out && !s.draining.holds(sh.number) {
			unknown = append(unknown, sh)
		}
	}
	s.mu.Unlock()
	if len(unknown) > 0 {
		numbers, fences := fenced(unknown)
		rows, _ := s.own.Query(ctx, s.sql.reload, s.config.Subscription, numbers, fences, s.generation())
		if err := s.loadCursors(rows); err != nil {
			return fmt.Errorf("outbox: read the cursors again: %w", err)
		}
		s.mu.Lock()
		for i, number := range numbers {
			if sh := s.shards[number]; sh != nil && sh.fence == fences[i] {
				s.drop(number) // it did not come back: it is somebody else's, or the subscription is another
				s.tendAt = time.Time{}
			}
		}
		s.mu.Unlock()
	}
	return s.loadGated(ctx)
}

// renew keeps the leases while a batch is being published.
func (s *Store) renew(ctx context.Context, shards map[int16]int64) error {
	_, err := s.heartbeat(ctx)
	if errors.Is(err, outbox.ErrGone) {
		return fmt.Errorf("%w: %w", outbox.ErrLeaseLost, err)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for number, fence := range shards {
		if sh := s.shards[number]; sh != nil && sh.fence == fence {
			return nil
		}
	}
	return outbox.ErrLeaseLost
}

// Leave gives up all shards, so that others can take them. The relay calls it when it stops; a store that has left can
// claim again.
func (s *Store) Leave(ctx context.Context) error {
	select {
	case s.reading <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("outbox: leave the stream: %w", ctx.Err())
	}
	defer s.doneReading()
	s.mu.Lock()
	numbers, fences := fenced(s.sorted())
	for number := range s.shards {
		s.drop(number)
	}
	s.parked, s.draining = nil, nil
	s.tendAt, s.lookAt = time.Time{}, time.Time{}
	s.mu.Unlock()
	var given error
	if len(numbers) > 0 {
		_, given = s.own.Exec(ctx, s.sql.giveUp, s.config.Subscription, numbers, fences)
	}
	_, left := s.own.Exec(ctx, s.sql.leave, s.config.Subscription, [16]byte(s.config.WorkerID))
	s.disconnect()
	if err := errors.Join(given, left); err != nil {
		return fmt.Errorf("outbox: leave the stream: %w", err)
	}
	return nil
}
