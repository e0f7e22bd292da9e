package pgstream

// What a relay does while its destination takes nothing.

import (
	"context"
	"fmt"
	"os"
	"time"
)

// waitSQL lists a relay as one that waits. It is not alive to the others, which share the shards among
// themselves, earlier programs too. $1 subscription, $2 worker, $3 lease in seconds, $4 host, $5 pid, $6 generation of
// this relay. It returns that of the subscription.
const waitSQL = `
WITH me AS (
  INSERT INTO {relays} AS r (subscription, worker, host, pid, alive_until, waits_until, lease_seconds, generation)
  VALUES ($1, $2, $4, $5, now(), now() + make_interval(secs => $3), $3, $6)
  ON CONFLICT (subscription, worker) DO UPDATE SET alive_until = excluded.alive_until, waits_until = excluded.waits_until,
    lease_seconds = excluded.lease_seconds, generation = excluded.generation
)
SELECT coalesce((SELECT generation FROM {subscriptions} WHERE name = $1), -1)`

// Wait keeps this relay listed while nothing may be claimed, and notices a definition that was altered or dropped. It
// leaves its shards to relays that can publish.
func (s *Store) Wait(ctx context.Context) error {
	select {
	case s.reading <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer s.doneReading()
	if s.life.Err() != nil {
		return errClosed
	}
	err := s.wait(ctx)
	if err != nil {
		s.disconnect()
	}
	return err
}

func (s *Store) wait(ctx context.Context) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	if err := s.checkHistory(ctx, time.Now()); err != nil {
		return err
	}
	var generation int64
	err := s.own.QueryRow(ctx, s.sql.wait, s.config.Subscription, [16]byte(s.config.WorkerID), s.config.Lease.Seconds(),
		s.host, os.Getpid(), s.generation()).Scan(&generation)
	if isDropped(err) {
		return &droppedError{s.config.Subscription}
	}
	if err != nil {
		return fmt.Errorf("outbox: wait for the destination of subscription %q: %w", s.config.Subscription, err)
	}
	s.mu.Lock()
	for _, sh := range s.shards {
		sh.leaving = true
	}
	s.tendAt = time.Time{} // the next claim takes shards again
	s.mu.Unlock()
	if err := s.handOver(ctx); err != nil {
		return err
	}
	if generation != s.generation() {
		return s.redefine(ctx, s.own)
	}
	return nil
}
