package pgstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/packfinderz/outbox"
)

// rotateEvery is how often a relay looks for a slot to empty.
const rotateEvery = time.Minute

// promoteAllSQL makes the first event of every key due that waits behind nothing. Nobody
// should have left one so; it would wait for ever. It jumps from key to key by the index. Where
// dead events are skipped, one at the head of a key lets it go: a relay that had not noticed a
// change of the policy may have settled it. $1 subscription, $2 whether dead events are skipped.
const promoteAllSQL = `
WITH RECURSIVE head AS (
  (SELECT shard, key, ctid AS at, state FROM {parked}
   WHERE subscription = $1 AND gates AND key IS NOT NULL
   ORDER BY shard, key, seq LIMIT 1)
  UNION ALL
  SELECT next.* FROM head CROSS JOIN LATERAL (
    SELECT p.shard, p.key, p.ctid, p.state FROM {parked} AS p
    WHERE p.subscription = $1 AND p.gates AND p.key IS NOT NULL AND (p.shard, p.key) > (head.shard, head.key)
    ORDER BY p.shard, p.key, p.seq LIMIT 1
  ) AS next
)
UPDATE {parked} AS p SET
  state = CASE head.state WHEN 'waiting' THEN 'retry' ELSE p.state END, gates = head.state = 'waiting',
  next_attempt_at = CASE head.state WHEN 'waiting' THEN now() END,
  changed_at = CASE head.state WHEN 'waiting' THEN now() ELSE p.changed_at END
FROM head WHERE p.ctid = head.at AND (head.state = 'waiting' OR head.state = 'dead' AND $2)`

// Sweep frees keys that wait behind nothing, and empties the slot whose turn comes next. It
// moves nothing to dead: the claim does.
func (s *Store) Sweep(ctx context.Context) (int64, error) {
	err := s.promoteAll(ctx)
	s.mu.Lock()
	rotate := !time.Now().Before(s.rotateAt)
	s.rotateAt = time.Now().Add(rotateEvery)
	s.mu.Unlock()
	if rotate {
		err = errors.Join(err, s.rotate(ctx, rotation{}))
	}
	return 0, err
}

func (s *Store) promoteAll(ctx context.Context) error {
	skips := s.definition.Load().OnDead == DeadSkips
	for {
		tag, err := s.own.Exec(ctx, s.stream.names(promoteAllSQL), s.config.Subscription, skips)
		if err != nil {
			return fmt.Errorf("outbox: look for keys that wait behind nothing: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return nil
		}
		// What waited behind a dead event is found by another look.
		s.mu.Lock()
		s.lookAt = time.Time{}
		s.mu.Unlock()
	}
}

// The rows beside the log that are purged by age, in small steps. $1 retention in seconds,
// $2 step, $3 the subscription whose dead events go: others keep theirs by a retention of their own.
const (
	purgeDeliveriesSQL = `
DELETE FROM {deliveries} WHERE ctid = ANY(ARRAY(
  SELECT ctid FROM {deliveries} WHERE settled_at < now() - make_interval(secs => $1) ORDER BY settled_at LIMIT $2))`
	purgeDedupeSQL = `
DELETE FROM {dedupe} WHERE ctid = ANY(ARRAY(
  SELECT ctid FROM {dedupe} WHERE created_at < now() - make_interval(secs => $1) ORDER BY created_at LIMIT $2))`
	purgeDeadSQL = `
DELETE FROM {parked} WHERE ctid = ANY(ARRAY(
  SELECT ctid FROM {parked} WHERE subscription = $3 AND state = 'dead' AND changed_at < now() - make_interval(secs => $1) LIMIT $2))`
	// $1 retention in seconds, $2 subscription.
	countDeadSQL = `SELECT count(*) FROM {parked} WHERE subscription = $2 AND state = 'dead' AND changed_at < now() - make_interval(secs => $1)`
)

// Purge empties the slots whose events are all older than the retention and settled by every subscription, and trims what
// is kept beside them: the log of deliveries and the dedupe keys. Dead events of this subscription go after their own
// retention. If one step fails, the others run all the same. It returns the number of events that were deleted; it counts
// the events of slots only if Progress or DryRun is set.
func (s *Store) Purge(ctx context.Context, purge outbox.Purge) (int64, error) {
	purge, err := purge.WithDefaults()
	if err != nil {
		return 0, err
	}
	var total int64
	progress := func(n int64) {
		total += n
		if purge.Progress != nil {
			purge.Progress(total)
		}
	}
	r := rotation{retention: purge.Retention, dryRun: purge.DryRun}
	if purge.Progress != nil || purge.DryRun {
		r.emptied = progress
	}
	err = s.rotate(ctx, r)
	if errors.Is(err, ErrRestored) {
		return 0, err // nothing here can be trusted to be old
	}
	errs := []error{err}
	if purge.DeadLetterRetention > 0 {
		errs = append(errs, s.purgeDead(ctx, purge, progress))
	}
	if !purge.DryRun {
		for _, beside := range []struct{ what, sql string }{{"deliveries", purgeDeliveriesSQL}, {"dedupe keys", purgeDedupeSQL}} {
			if err := s.purgeRows(ctx, beside.sql, purge.Retention, purge.BatchSize, func(int64) {}); err != nil {
				errs = append(errs, fmt.Errorf("outbox: purge %s: %w", beside.what, err))
			}
		}
	}
	return total, errors.Join(errs...)
}

func (s *Store) purgeDead(ctx context.Context, purge outbox.Purge, progress func(int64)) error {
	if purge.DryRun {
		var n int64
		err := s.pool.QueryRow(ctx, s.stream.names(countDeadSQL), purge.DeadLetterRetention.Seconds(), s.config.Subscription).Scan(&n)
		if err != nil {
			return fmt.Errorf("outbox: count dead events: %w", err)
		}
		progress(n)
		return nil
	}
	if err := s.purgeRows(ctx, purgeDeadSQL, purge.DeadLetterRetention, purge.BatchSize, progress, s.config.Subscription); err != nil {
		return fmt.Errorf("outbox: purge dead events: %w", err)
	}
	return s.promoteAll(ctx) // what waited behind them waits for nothing now
}

// purgeRows deletes rows step by step; more are the statement's arguments from $3 on.
func (s *Store) purgeRows(
	ctx context.Context, sql string, retention time.Duration, step int, progress func(int64), more ...any,
) error {
	args := append([]any{retention.Seconds(), step}, more...)
	for {
		tag, err := s.pool.Exec(ctx, s.stream.names(sql), args...)
		if err != nil {
			return err
		}
		progress(tag.RowsAffected())
		if tag.RowsAffected() < int64(step) {
			return nil
		}
	}
}
