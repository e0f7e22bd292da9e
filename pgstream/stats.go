package pgstream

import (
	"context"
	"fmt"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/streamsql"
)

// statsSQL counts up to $2 events. $1 subscription.
const statsSQL = `
WITH lag AS (
  SELECT (SELECT e.created_at FROM ` + streamsql.Unread + ` AS e WHERE true%[1]s LIMIT 1) AS oldest
  FROM {shards} AS c WHERE c.subscription = $1
), parked AS (
  SELECT
    count(*) FILTER (WHERE state = 'retry' AND next_attempt_at <= now()) AS due,
    count(*) FILTER (WHERE state = 'retry' AND next_attempt_at > now() AND attempts = 0) AS scheduled,
    count(*) FILTER (WHERE state = 'retry' AND next_attempt_at > now() AND attempts > 0) AS retrying,
    count(*) FILTER (WHERE state IN ('waiting', 'stopped')) AS waiting,
    count(*) FILTER (WHERE state = 'dead') AS dead,
    min(created_at) FILTER (WHERE state <> 'dead') AS oldest
  FROM (SELECT state, next_attempt_at, attempts, created_at FROM {parked} WHERE subscription = $1 LIMIT $2) AS p
)
SELECT (
    SELECT count(*) FROM (SELECT FROM {shards} AS c CROSS JOIN LATERAL ` + streamsql.Unread + ` AS e WHERE c.subscription = $1%[1]s LIMIT $2) AS l
  ) + due, scheduled, retrying + waiting, dead,
  coalesce(extract(epoch FROM now() - least(oldest, (SELECT min(oldest) FROM lag))), 0)::float8
FROM parked`

// idleSQL looks for an event that is unread, or that will be tried again. One that waits
// behind such an event is not looked for, and one that waits behind a dead or held event
// waits for a person. A window that is open is somebody's work by itself: it closes when its
// last page is settled. $1 subscription.
const idleSQL = `
SELECT CASE
  WHEN EXISTS (SELECT FROM {shards} AS c WHERE c.subscription = $1 AND c.s2 IS NOT NULL) THEN false
  WHEN EXISTS (SELECT FROM {parked} WHERE subscription = $1 AND state = 'retry' AND (attempts > 0 OR next_attempt_at <= now())) THEN false
  WHEN EXISTS (SELECT FROM {parked} WHERE subscription = $1 AND state = 'stopped') THEN false
  ELSE NOT EXISTS (
    SELECT FROM {shards} AS c CROSS JOIN LATERAL ` + streamsql.Unread + ` AS e WHERE c.subscription = $1%[1]s
  ) END`

// Idle reports whether nothing is left to do until somebody emits, or a scheduled event is
// due; see outbox.Idler.
func (s *Store) Idle(ctx context.Context) (idle bool, err error) {
	conditions, args := s.definition.Load().Filter.conditions(2)
	err = s.own.QueryRow(ctx, s.stream.names(fmt.Sprintf(idleSQL, conditions)), append([]any{s.config.Subscription}, args...)...).Scan(&idle)
	if err != nil {
		return false, fmt.Errorf("outbox: look for unread events of subscription %q: %w", s.config.Subscription, err)
	}
	return idle, nil
}

// Stats counts what waits in the stream and what is parked. Held are the events this store
// is publishing; waiting events count as Retrying.
func (s *Store) Stats(ctx context.Context) (outbox.Stats, error) {
	conditions, args := s.definition.Load().Filter.conditions(3)
	var stats outbox.Stats
	var age float64
	err := s.own.QueryRow(ctx, s.stream.names(fmt.Sprintf(statsSQL, conditions)),
		append([]any{s.config.Subscription, outbox.StatsLimit}, args...)...).
		Scan(&stats.Due, &stats.Scheduled, &stats.Retrying, &stats.Dead, &age)
	if err != nil {
		return outbox.Stats{}, fmt.Errorf("outbox: count the events of subscription %q: %w", s.config.Subscription, err)
	}
	stats.OldestAge = time.Duration(age * float64(time.Second))
	s.mu.Lock()
	for _, sh := range s.shards {
		if sh.out {
			stats.Held += int64(len(sh.pages[0].places))
		}
	}
	s.mu.Unlock()
	stats.Held = min(stats.Held, stats.Due)
	stats.Due -= stats.Held
	return stats, nil
}
