package pgstream

// What is known of a promotion: a standby that took the primary's place has what the primary had
// sent it. The rest of the primary's last moments is gone: events with their business rows, and
// the settling of others.

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/packfinderz/outbox/internal/pgsession"
	"github.com/packfinderz/outbox/internal/streamsql"
)

const (
	timelineSQL = `
SELECT n.system_identifier, ` + streamsql.Timeline + `, coalesce(o.system_identifier, 0), coalesce(o.timeline, 0)
FROM pg_control_system() AS n, {settings} AS o`

	// missingSQL looks for deliveries on the server: those whose event is here and is still to be
	// delivered, and those whose event is not here. Seqs of a lost event are given out again, so that
	// its id is compared. An event that was parked may have left the log long ago. $1 subscription;
	// arrays, one entry per delivery: $2 shards, $3 seqs, $4 ids, $5 whether it was parked.
	missingSQL = `
SELECT count(*) FILTER (WHERE waits OR here AND NOT passed), count(*) FILTER (WHERE NOT waits AND NOT here AND NOT parked)
FROM (
  SELECT u.parked,
    EXISTS (SELECT FROM {parked} AS p WHERE p.subscription = $1 AND p.shard = u.shard AND p.seq = u.seq AND p.id = u.id) AS waits,
    e.id IS NOT NULL AS here, coalesce(` + streamsql.Behind + `, false) AS passed
  FROM unnest($2::smallint[], $3::bigint[], $4::uuid[], $5::boolean[]) AS u(shard, seq, id, parked)
  LEFT JOIN {shards} AS c ON c.subscription = $1 AND c.shard = u.shard
  LEFT JOIN LATERAL (SELECT e.id, e.xid, e.seq FROM {stream} AS e WHERE e.shard = u.shard AND e.seq = u.seq AND e.id = u.id LIMIT 1) AS e ON true
) AS deliveries`

	// notePromotionSQL adds what one relay knows; the first one begins anew. $1 from, $2 to, $3 relays,
	// $4 repeated, $5 orphaned, $6 more.
	notePromotionSQL = `
UPDATE {settings} AS o SET promoted_to = $2::bigint,
  promoted_at = CASE WHEN o.promoted_to = $2 THEN o.promoted_at ELSE now() END,
  promoted_from = CASE WHEN o.promoted_to = $2 THEN o.promoted_from ELSE $1::bigint END,
  promoted_relays = CASE WHEN o.promoted_to = $2 THEN o.promoted_relays ELSE 0 END + $3::integer,
  promoted_repeated = CASE WHEN o.promoted_to = $2 THEN o.promoted_repeated ELSE 0 END + $4::bigint,
  promoted_orphaned = CASE WHEN o.promoted_to = $2 THEN o.promoted_orphaned ELSE 0 END + $5::bigint,
  promoted_more = CASE WHEN o.promoted_to = $2 THEN o.promoted_more ELSE false END OR $6::boolean`
)

// notePromotion notices that the server is on another timeline than before, and records how many of this store's deliveries
// it does not know. This is only for people to read: the store reads on from the stored cursors, whatever it finds.
func (s *Store) notePromotion(ctx context.Context, conn *pgsession.Conn) error {
	var system, timeline, storedSystem, stored int64
	if err := conn.QueryRow(ctx, s.stream.names(timelineSQL)).Scan(&system, &timeline, &storedSystem, &stored); err != nil {
		return fmt.Errorf("outbox: read the server's timeline: %w", err)
	}
	known := s.timeline // of the session before; zero for the first one
	from := known
	if from == 0 && storedSystem == system {
		from = stored
	}
	if from == 0 || from >= timeline {
		s.timeline = timeline
		return nil
	}
	if err := s.countMissing(ctx, conn, known, from, timeline); err != nil {
		if conn.Conn().IsClosed() {
			return err // the next session tries again
		}
		s.log.Warn("the deliveries that the promoted server does not know could not be counted", "error", err)
	}
	s.timeline = timeline
	return nil
}

func (s *Store) countMissing(ctx context.Context, conn *pgsession.Conn, known, from, to int64) error {
	var repeated, orphaned int64
	var more bool
	relays := 0
	if known != 0 {
		relays = 1
		s.mu.Lock()
		var list []delivery
		list, more = s.delivered.recent()
		s.mu.Unlock()
		n := len(list)
		shards, seqs, ids, parked := make([]int16, n), make([]int64, n), make([][16]byte, n), make([]bool, n)
		for i, d := range list {
			shards[i], seqs[i], ids[i], parked[i] = d.shard, d.seq, d.id, d.parked
		}
		err := conn.QueryRow(ctx, s.stream.names(missingSQL), s.config.Subscription, shards, seqs, ids, parked).Scan(&repeated, &orphaned)
		if err != nil {
			return fmt.Errorf("outbox: look for deliveries on the promoted server: %w", err)
		}
	}
	if _, err := conn.Exec(ctx, s.stream.names(notePromotionSQL), from, to, relays, repeated, orphaned, more); err != nil {
		return fmt.Errorf("outbox: note a promotion: %w", err)
	}
	s.mu.Lock()
	s.delivered.forget()
	s.mu.Unlock()
	level, text := slog.LevelWarn, "the server was promoted: of what this relay has delivered, some events are published again, or are not there"
	if repeated == 0 && orphaned == 0 {
		level, text = slog.LevelInfo, "the server was promoted, and has all that this relay has delivered"
	}
	s.log.Log(ctx, level, text, "from_timeline", from, "timeline", to, "published_again", repeated, "without_event", orphaned)
	return nil
}
