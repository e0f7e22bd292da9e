package pgstream

import (
	"fmt"
	"time"

	"github.com/packfinderz/outbox/internal/streamsql"
)

// recent is the condition that a row e lies in a slot that a transaction of up to an hour writes
// to. There are two of those, and the planner leaves the others out, where a slot is longer.
func recent(shape Shape) string {
	const oldest = time.Hour
	if shape.SlotLength < oldest {
		return ""
	}
	at := func(began string) string {
		return fmt.Sprintf(`(floor(date_part('epoch', %s) / %d)::bigint %% %d)::smallint`, began, int(shape.SlotLength/time.Second), shape.Slots)
	}
	return " AND e.slot IN (" + at("now()") + ", " + at(fmt.Sprintf("now() - interval '%d s'", int(oldest/time.Second))) + ")"
}

// A window lies between two snapshots, s1 and s2: it holds the rows that s2 sees and s1 does
// not. Opening one is a single UPDATE that takes s2 itself. It reads the sequence before its
// own xid is assigned, and keeps the value read by an earlier, completed statement (the old
// hi) as q2: whatever s2 does not know of began after that statement, and so drew its seqs
// above it. A lower q2 would only cost time; a higher one would lose events.
//
// The first page of the main part comes with it, unless there are late events to be read before:
// the statement reads with the snapshot that it takes, so that it sees what s2 sees, by the
// cursor as the table has it.
//
// A window that would hold nothing of its shard is opened every ten seconds and no oftener: not
// opening one is always safe, and s1 must not grow old. One that was opened in the future was opened
// before the clock was set back.
//
// The looks leave out slots that only transactions of more than an hour still write to (recent):
// what those commit is found within the ten seconds. They have an order, which they do not
// need, so that the one above q1 goes by shard and seq, and the one for late events by ofXid: on a
// small stream either index looks as good to the planner, which keeps its plan while the stream
// grows, and the wrong one is read from end to end.
//
// None is opened over a sequence that was set back: while it is behind what it was before, or behind an
// event that can be seen, which would lie above the window; nor where an event has a number up to q1 that
// its transaction can only have drawn after q1 was read (passedOver): it would lie below the window's main
// part, and in no late one. So nothing is ever passed over, whoever dies when; checkHistory notes the rest.
//
// Nor is one opened while a slot of the log is detached (whole).
//
// None of these may be pipelined with another statement, or run in a transaction that has an
// xid. pg_sequence_last_value is right on a fresh sequence too; SELECT last_value is not.
const (
	// inWindow are the rows e of a window u.
	inWindow = `NOT pg_visible_in_snapshot(e.xid, u.s1) AND pg_visible_in_snapshot(e.xid, u.s2)`

	// whence is the sequence, and the generation of the subscription: a relay that has not noticed
	// that the definition is another one opens nothing. $1 subscription.
	whence = `q AS MATERIALIZED (SELECT coalesce(pg_sequence_last_value({'stream_seq'}), 0) AS v,
  (SELECT generation FROM {subscriptions} WHERE name = $1) AS generation)`

	// whole is whether the log has all its slots: what is in one that was detached cannot be seen.
	whole = `(SELECT count(*) FROM pg_inherits WHERE inhparent = {'stream'} AND NOT inhdetachpending) >= {slots}`

	// $1 subscription, $2 shards, $3 fences.
	refreshSQL = `
WITH ` + whence + `
UPDATE {shards} AS c SET hi = q.v
FROM q, unnest($2::smallint[], $3::bigint[]) AS u(shard, fence)
WHERE c.subscription = $1 AND c.shard = u.shard AND c.fence = u.fence AND c.fence >> 32 = q.generation AND c.s2 IS NULL AND q.v > c.hi`

	// passedOver looks for that event. It walks the index by xid, over the rows of all shards since the mark.
	passedOver = `SELECT true FROM {stream} AS e WHERE e.xid >= u.mark AND e.shard = c.shard AND e.seq <= c.q1
        ORDER BY e.xid, e.shard, e.seq LIMIT 1`

	// $4 limit of a page, $5 the xids of the shards' marks (cursor.mark). punctual tells that there are no late
	// events, in whatever slot: only then a page is read. What is below nothing is not even looked for.
	openSQL = `
WITH ` + whence + `, opened AS (
  UPDATE {shards} AS c SET q2 = c.hi, s2 = pg_current_snapshot(), hi = q.v, pos = 0, opened_at = now()
  FROM q, unnest($2::smallint[], $3::bigint[], $5::text[]::xid8[]) AS u(shard, fence, mark)
  WHERE c.subscription = $1 AND c.shard = u.shard AND c.fence = u.fence AND c.fence >> 32 = q.generation AND c.s2 IS NULL AND q.v >= c.hi AND ` + whole + `
    AND (q.v > c.q1 OR EXISTS (SELECT FROM pg_snapshot_xip(c.s1) AS x WHERE pg_visible_in_snapshot(x, pg_current_snapshot())))
    AND CASE WHEN c.opened_at IS NULL OR c.opened_at < now() - interval '10 s' OR c.opened_at > now()
      OR (SELECT true FROM {stream} AS e WHERE e.shard = c.shard AND e.seq > c.q1{recent} AND NOT pg_visible_in_snapshot(e.xid, c.s1)
        ORDER BY e.seq LIMIT 1)%[2]s
      THEN (SELECT true FROM {stream} AS e WHERE e.shard = c.shard AND e.seq > q.v ORDER BY e.seq LIMIT 1) IS NULL
        AND (c.q1 = 0 OR (` + passedOver + `) IS NULL) END
  RETURNING c.shard, c.s1, c.q1, c.s2, c.q2, c.hi, pg_current_xact_id() AS xid
), u AS MATERIALIZED (
  SELECT *, %[3]s AS punctual FROM opened AS c
)
SELECT u.shard, e.slot, e.seq, e.not_before > now(), {e.event}, u.s2::text, u.q2, u.hi, u.xid, u.punctual
FROM u
LEFT JOIN LATERAL (
  SELECT e.slot, e.seq, {e.event}
  FROM {stream} AS e
  WHERE e.shard = u.shard AND e.seq > u.q1 AND e.seq <= CASE WHEN u.punctual THEN u.hi END AND ` + inWindow + `%[1]s
  ORDER BY e.seq
  FETCH FIRST $4 ROWS WITH TIES
) AS e ON true`

	// lateLookSQL is another reason to open a window, and punctualSQL whether it has no late part.
	// Where none can have one (cursor.mayBeLate), the statement goes without them. It takes a
	// quarter less time then: most of it is to set up the plan.
	lateLookSQL = `
      OR EXISTS (SELECT FROM pg_snapshot_xip(c.s1) AS x
        CROSS JOIN LATERAL (SELECT FROM {stream} AS e WHERE e.shard = c.shard AND e.seq <= c.q1{recent} AND ` + streamsql.OfXid + ` LIMIT 1) AS e
        WHERE pg_visible_in_snapshot(x, pg_current_snapshot()))`
	punctualSQL = `NOT EXISTS (SELECT FROM pg_snapshot_xip(c.s1) AS x
    CROSS JOIN LATERAL (SELECT FROM {stream} AS e WHERE e.shard = c.shard AND e.seq <= c.q1 AND ` + streamsql.OfXid + ` LIMIT 1) AS e
    WHERE pg_visible_in_snapshot(x, c.s2))`
)

// Reading goes by seq, not by xid: a transaction with an older xid may have waited for the
// row lock of a younger one, and then its events come later.
const (
	// late are the rows of transactions that ran at s1 and had ended by s2. $1 shard, $2 pos,
	// $3 q1, $4 s1, $5 s2, $6 limit.
	lateSQL = `
SELECT e.shard, e.slot, e.seq, e.not_before > now(), {e.event}
FROM (SELECT x FROM pg_snapshot_xip($4::text::pg_snapshot) AS x WHERE pg_visible_in_snapshot(x, $5::text::pg_snapshot)) AS ended
CROSS JOIN LATERAL (
  SELECT e.shard, e.slot, e.seq, {e.event}
  FROM {stream} AS e
  WHERE e.shard = $1 AND e.seq > $2 AND e.seq <= $3%[1]s AND ` + streamsql.OfXid + `
  FETCH FIRST $6 ROWS WITH TIES
) AS e
ORDER BY e.seq
FETCH FIRST $6 ROWS WITH TIES`

	// main are the rows above q1. $1 shards, $2 pos, $3 hi, $4 s1, $5 s2, $6 limit.
	mainSQL = `
SELECT e.shard, e.slot, e.seq, e.not_before > now(), {e.event}
FROM unnest($1::smallint[], $2::bigint[], $3::bigint[], $4::text::pg_snapshot[], $5::text::pg_snapshot[]) AS u(shard, pos, hi, s1, s2)
CROSS JOIN LATERAL (
  SELECT e.shard, e.slot, e.seq, {e.event}
  FROM {stream} AS e
  WHERE e.shard = u.shard AND e.seq > u.pos AND e.seq <= u.hi AND ` + inWindow + `%[1]s
  ORDER BY e.seq
  FETCH FIRST $6 ROWS WITH TIES
) AS e`
)
