package pgstream

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox"
)

// An event whose topic takes nothing for the moment is stopped: parked without an attempt, so
// that the events of other topics go past it, and made due when the topic is open again. There is
// a limit to how many of a topic are parked; beyond it the shard waits.

const (
	// DefaultMaxStopped is the default of Config.MaxStopped.
	DefaultMaxStopped = 100_000
	// freeFirst and freeMost are how many stopped events are made due at a time: few at first,
	// for the topic may be on trial.
	freeFirst = 10
	freeMost  = 1000
)

const (
	// $1 subscription, $2 shards.
	countStoppedSQL = `
SELECT p.route, count(*) FROM {parked} AS p
WHERE p.subscription = $1 AND p.shard = ANY($2) AND p.state = 'stopped' GROUP BY p.route`

	// The oldest of each shard. $1 subscription, $2 shards, $3 route, $4 how many of a shard.
	freeStoppedSQL = `
WITH freed AS MATERIALIZED (
  SELECT p.at FROM unnest($2::smallint[]) AS u(shard)
  CROSS JOIN LATERAL (
    SELECT p.ctid AS at FROM {parked} AS p
    WHERE p.subscription = $1 AND p.shard = u.shard AND p.route = $3 AND p.state = 'stopped'
    ORDER BY p.seq
    LIMIT $4
  ) AS p
)
UPDATE {parked} AS p SET state = 'retry', route = NULL, next_attempt_at = now(), changed_at = now()
FROM freed WHERE p.ctid = freed.at`
)

// stoppedTopic is what is known of the events that wait for a topic.
type stoppedTopic struct {
	events int
	// step is how many are made due next.
	step int
}

// stopRoom tells, for one settle, whether an event of a topic can be parked.
func (s *Store) stopRoom() func(topic string) bool {
	taken := make(map[string]int)
	return func(topic string) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		events := taken[topic]
		if known := s.stopped[topic]; known != nil {
			events += known.events
		}
		if events >= s.config.MaxStopped {
			return false
		}
		taken[topic]++
		return true
	}
}

// countStopped notes events that were stopped. The caller holds the lock.
func (s *Store) countStopped(parks *parkArrays) {
	for _, route := range parks.routes {
		if route == nil {
			continue
		}
		if s.stopped[*route] == nil {
			s.stopped[*route] = &stoppedTopic{step: freeFirst}
		}
		s.stopped[*route].events++
	}
}

// noteClosed notes which topics are closed, and lets the shards go on that waited for another.
func (s *Store) noteClosed(closed outbox.ClosedRoutes) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = closed.Topics
	for _, sh := range s.shards {
		if sh.behind != "" && !slices.Contains(s.closed, sh.behind) {
			sh.behind = ""
		}
	}
}

// opened are the topics that are not closed and for which events wait. While parked events are out
// there are none: the topic of those may be on trial, and no more are made due before it is known.
func (s *Store) opened() (topics []string) {
	if s.parked != nil || s.draining != nil {
		return nil
	}
	for topic := range s.stopped {
		if !slices.Contains(s.closed, topic) {
			topics = append(topics, topic)
		}
	}
	slices.Sort(topics)
	return topics
}

// free makes events due whose topic is open again, some at a time, so that a look at now finds them.
// Which topics events wait for is read when shards are taken.
func (s *Store) free(ctx context.Context, now time.Time) error {
	s.mu.Lock()
	numbers, _ := fenced(s.sorted())
	recount := s.recount
	s.mu.Unlock()
	if len(numbers) == 0 {
		return nil
	}
	if recount {
		if err := s.recountStopped(ctx, numbers); err != nil {
			return err
		}
	}
	s.mu.Lock()
	opened := s.opened()
	s.mu.Unlock()
	for _, topic := range opened {
		s.mu.Lock()
		step := s.stopped[topic].step
		s.mu.Unlock()
		tag, err := s.reader.conn.Exec(ctx, s.sql.freeStopped, s.config.Subscription, numbers, topic, step)
		if err != nil {
			return fmt.Errorf("outbox: free the events of topic %q: %w", topic, err)
		}
		s.mu.Lock()
		known := s.stopped[topic]
		if freed := int(tag.RowsAffected()); freed > 0 {
			known.events -= min(known.events, freed)
			known.step = min(2*known.step, freeMost)
			s.lookBy(now)
		} else {
			delete(s.stopped, topic)
		}
		s.mu.Unlock()
	}
	return nil
}

// recountStopped counts the events that wait for each topic.
func (s *Store) recountStopped(ctx context.Context, numbers []int16) error {
	rows, _ := s.reader.conn.Query(ctx, s.sql.countStopped, s.config.Subscription, numbers)
	counted := make(map[string]*stoppedTopic)
	var topic string
	var events int
	if _, err := pgx.ForEachRow(rows, []any{&topic, &events}, func() error {
		counted[topic] = &stoppedTopic{events: events, step: freeFirst}
		return nil
	}); err != nil {
		return fmt.Errorf("outbox: count stopped events: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped, s.recount = counted, false
	return nil
}
