package pgstream

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Repaired is what a repair did.
type Repaired struct {
	// Events is how many unread events were parked, due now, over all subscriptions.
	Events int64 `json:"events"`
	// Subscriptions is how many subscriptions begin anew.
	Subscriptions int `json:"subscriptions"`
}

// repairSQL parks what the cursors of the old server had not passed, and lets the cursors
// begin at this statement's own snapshot. A row that this server wrote itself bears the xid
// that wrote it; the old snapshots say nothing about it, so it counts as unread. q1 and hi
// begin at zero: too low is always safe. A delayed event gates nothing, so the first of a key that
// is due is the first of those that are not delayed.
const repairSQL = `
WITH unread AS MATERIALIZED (
  SELECT c.subscription, e.shard, e.seq, {e.event}, coalesce(e.not_before > now(), false) AS delayed,
    row_number() OVER (PARTITION BY c.subscription, e.shard, e.key, coalesce(e.not_before > now(), false) ORDER BY e.seq) AS place
  FROM {shards} AS c
  JOIN {subscriptions} AS s ON s.name = c.subscription
  JOIN {stream} AS e ON e.shard = c.shard
  WHERE NOT (` + behindCursor + ` AND ` + restored + `)
    AND (s.namespace IS NULL OR s.namespace = e.namespace) AND (s.topics IS NULL OR e.topic = ANY(s.topics))
    AND (s.types IS NULL OR e.type = ANY(s.types)) AND (s.tenant_id IS NULL OR e.tenant_id = s.tenant_id)
), parking AS (
  INSERT INTO {parked} (subscription, shard, seq, state, gates, next_attempt_at, {event})
  SELECT e.subscription, e.shard, e.seq,
    CASE WHEN e.key IS NULL OR e.delayed OR e.place = 1 THEN 'retry' ELSE 'waiting' END,
    e.key IS NOT NULL AND NOT e.delayed,
    CASE WHEN e.delayed THEN e.not_before ELSE now() END, {e.event}
  FROM unread AS e
  ON CONFLICT DO NOTHING
  RETURNING 1
), moved AS (
  UPDATE {shards} SET s1 = pg_current_snapshot(), q1 = 0, s2 = NULL, q2 = NULL, hi = 0, pos = 0,
    owner = NULL, locked_until = NULL, fence = fence + 1
  RETURNING subscription
)
SELECT (SELECT count(*) FROM parking), (SELECT count(DISTINCT subscription) FROM moved)`

// restored is the condition that a row was not written by the transaction whose xid it
// bears, but copied in.
const restored = `e.xmin::text::bigint <> e.xid::text::numeric % 4294967296`

// settleXidsSQL gives restored rows an xid that every snapshot of this server has seen, and
// that a subscription which begins at the oldest event still takes.
const settleXidsSQL = `UPDATE {stream} AS e SET xid = '1' WHERE ` + restored + ` AND e.xid <> '1'`

// raiseSequenceSQL keeps seqs from being drawn twice.
const raiseSequenceSQL = `
SELECT setval({'stream_seq'}, m.seq) FROM (SELECT max(seq) AS seq FROM {stream}) AS m
WHERE m.seq > coalesce(pg_sequence_last_value({'stream_seq'}), 0)`

// Repair makes a stream usable that was restored from a dump: the xids of its rows and the
// snapshots of its cursors are those of another server. Events that a subscription had not
// passed are parked for it, due now and in order; every subscription goes on from there. On
// a stream that needs no repair it does nothing. Run it before producers write again.
// Relays that run all the same lose their shards, by the fence, before anything moves.
func (s Stream) Repair(ctx context.Context, pool *pgxpool.Pool) (Repaired, error) {
	err := s.check(ctx, pool)
	if err == nil {
		return Repaired{}, nil
	}
	if !errors.Is(err, ErrRestored) {
		return Repaired{}, err
	}
	var done Repaired
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, s.names(`LOCK TABLE {shards} IN EXCLUSIVE MODE`)); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, s.names(repairSQL)).Scan(&done.Events, &done.Subscriptions); err != nil {
			return err
		}
		for _, sql := range []string{settleXidsSQL, raiseSequenceSQL, `DELETE FROM {relays}`} {
			if _, err := tx.Exec(ctx, s.names(sql)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return Repaired{}, fmt.Errorf("outbox: repair the stream: %w", err)
	}
	return done, nil
}
