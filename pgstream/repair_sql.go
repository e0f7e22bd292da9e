package pgstream

// How a repair tells what was delivered.
//
// A cursor can be believed where its history is the server's. Of another history it says only what was
// delivered before the dump was taken, of events that are certainly not this server's own. All
// else counts as unread: what is in doubt is published again.

import "github.com/packfinderz/outbox/internal/streamsql"

// noCompileSQL keeps the server from compiling a large statement that runs once, which takes seconds.
const noCompileSQL = `SET LOCAL jit = off`

// classifySQL is the log as a repair sees it, and what is unread of it by each subscription it is for.
// $1 the server's history, NULL where it has none; $2 is set when every cursor is put right, and not
// those of other histories alone.
//
//   - own: a cursor that this server wrote, beside which events of another history were loaded. Which of
//     the events it has seen is not known of any.
//   - marks: events from xid on, with a seq up to seq, were passed over by somebody.
//   - again: a number that another event has, too, in the log or parked.
const classifySQL = `
WITH ` + streamsql.Born + `, cursors AS MATERIALIZED (
  SELECT c.*, coalesce(c.history = $1::uuid AND pg_snapshot_xmax(coalesce(c.s2, c.s1)) <= pg_snapshot_xmax(n.s), false) AS valid,
    coalesce(c.history IN (SELECT a.history FROM ` + streamsql.NativeStamps + `), false) AS own
  FROM n, {shards} AS c
), marks AS MATERIALIZED (
  SELECT xid, seq FROM {doubts} WHERE xid IS NOT NULL AND $2::boolean
  UNION SELECT pg_snapshot_xmax(s1), q1 FROM cursors WHERE valid AND q1 > 0 AND $2
), log AS MATERIALIZED (
  SELECT e.tableoid AS slot, e.ctid AS at, e.shard, e.seq, e.xid, e.id, e.namespace, e.topic, e.type, e.tenant_id, e.key, e.created_at,
    coalesce(e.not_before > now(), false) AS delayed,
    ` + streamsql.Alien + ` AS alien,
    pg_visible_in_snapshot(e.xid, n.s) AS visible,
    e.xid >= (SELECT xid FROM marks ORDER BY xid LIMIT 1) AND e.seq <= (SELECT max(seq) FROM marks)
      AND EXISTS (SELECT FROM marks AS m WHERE e.xid >= m.xid AND e.seq <= m.seq) AS marked,
    $2 AND (row_number() OVER (PARTITION BY e.shard, e.seq ORDER BY e.created_at, e.id) > 1
      OR EXISTS (SELECT FROM {parked} AS p WHERE p.shard = e.shard AND p.seq = e.seq AND p.id <> e.id)) AS again
  FROM n, {stream} AS e JOIN born ON born.slot = e.tableoid
), unread AS MATERIALIZED (
  SELECT c.subscription, e.*, NOT ` + streamsql.Behind + ` AS certain
  FROM cursors AS c
  JOIN {subscriptions} AS s ON s.name = c.subscription
  JOIN log AS e ON e.shard = c.shard
  WHERE ($2 OR c.history IS DISTINCT FROM $1::uuid)
    AND NOT (` + streamsql.Behind + ` AND CASE WHEN c.valid THEN NOT (e.alien AND e.xid <> '1') AND e.marked IS NOT TRUE ELSE e.alien AND NOT c.own END)
    AND ` + takesEvent + `
    AND NOT EXISTS (SELECT FROM {parked} AS p WHERE p.subscription = c.subscription AND p.id = e.id)
)`

// takesEvent is the condition that a subscription s takes an event e.
const takesEvent = `(s.namespace IS NULL OR s.namespace = e.namespace) AND (s.topics IS NULL OR e.topic = ANY(s.topics))
    AND (s.types IS NULL OR e.type = ANY(s.types)) AND (s.tenant_id IS NULL OR e.tenant_id = s.tenant_id)`

// missingCursors are the cursors m that a subscription should have, and has not: nobody would read those shards.
const missingCursors = `(
  SELECT s.name AS subscription, s.generation, g.shard
  FROM {subscriptions} AS s, {settings} AS o, generate_series(0, o.shards - 1) AS g(shard)
  WHERE s.ready AND NOT EXISTS (SELECT FROM {shards} AS c WHERE c.subscription = s.name AND c.shard = g.shard)
) AS m`

// countMissingSQL counts them, and what they will read.
const countMissingSQL = `
SELECT m.subscription, count(*), sum((SELECT count(*) FROM {stream} AS e JOIN {subscriptions} AS s ON s.name = m.subscription
  WHERE e.shard = m.shard AND ` + takesEvent + `))
FROM ` + missingCursors + ` GROUP BY 1 ORDER BY 1`

// makeMissingSQL makes them: they begin at the oldest event that is kept. $1 the subscriptions that may go
// on; NULL for all.
const makeMissingSQL = `
INSERT INTO {shards} (subscription, shard, fence, s1, q1, hi, pos, awaits_repair)
SELECT m.subscription, m.shard, m.generation << 32 | floor(random() * 1000000000)::bigint, '1:1:', 0, 0, 0,
  $1::text[] IS NOT NULL AND m.subscription <> ALL($1)
FROM ` + missingCursors

// countUnreadSQL counts what the subscriptions would get again: what they certainly have not got, and
// what is in doubt.
const countUnreadSQL = `
SELECT c.subscription, (SELECT count(*) FROM unread AS u WHERE u.subscription = c.subscription AND u.certain),
  (SELECT count(*) FROM unread AS u WHERE u.subscription = c.subscription AND NOT u.certain), c.waited
FROM (SELECT subscription, NOT $2 AND NOT bool_or(history IS DISTINCT FROM $1::uuid) AS waited FROM cursors
  WHERE $2 OR awaits_repair OR history IS DISTINCT FROM $1::uuid GROUP BY 1) AS c
ORDER BY 1`

// repairSQL parks what is unread, due now and in order, and lets the cursors begin at this statement's
// own snapshot: what is committed later is in their next window. q1 and hi begin at zero: too low is
// always safe, whatever transactions that run now have drawn. A delayed event gates nothing, so the first
// of a key that is due is the first of those that are not delayed.
//
// The rows of another history, and what was passed over, get an xid that every snapshot of this server
// has seen, and that a subscription which begins at the oldest event still takes. A number that is there
// twice is drawn anew: of two events with one number a page would have only the first.
//
// $3 the subscriptions that may go on; NULL for all.
const repairSQL = classifySQL + `, numbered AS MATERIALIZED (
  SELECT slot, at, nextval({'stream_seq'}) AS seq
  FROM (SELECT slot, at FROM log WHERE again ORDER BY created_at, seq, id) AS a
), placed AS MATERIALIZED (
  SELECT u.subscription, u.slot, u.at, u.shard, coalesce(a.seq, u.seq) AS seq, u.key, u.delayed, row_number() OVER (
    PARTITION BY u.subscription, u.shard, u.key, u.delayed ORDER BY coalesce(a.seq, u.seq)) AS place
  FROM unread AS u LEFT JOIN numbered AS a ON a.slot = u.slot AND a.at = u.at
), parking AS (
  INSERT INTO {parked} (subscription, shard, seq, state, gates, next_attempt_at, {event})
  SELECT p.subscription, p.shard, p.seq,
    CASE WHEN p.key IS NULL OR p.delayed OR p.place = 1 THEN 'retry' ELSE 'waiting' END,
    p.key IS NOT NULL AND NOT p.delayed,
    CASE WHEN p.delayed THEN e.not_before ELSE now() END, {e.event}
  FROM placed AS p JOIN {stream} AS e ON e.tableoid = p.slot AND e.ctid = p.at
), rewritten AS (
  UPDATE {stream} AS e SET seq = coalesce(a.seq, e.seq),
    xid = CASE WHEN l.alien OR NOT l.visible OR l.marked THEN '1'::xid8 ELSE e.xid END
  FROM log AS l LEFT JOIN numbered AS a ON a.slot = l.slot AND a.at = l.at
  WHERE $2 AND e.tableoid = l.slot AND e.ctid = l.at
    AND (a.seq IS NOT NULL OR l.xid <> '1' AND (l.alien OR NOT l.visible OR l.marked))
), moved AS (
  UPDATE {shards} AS c SET s1 = n.s, q1 = 0, s2 = NULL, q2 = NULL, hi = 0, pos = 0, opened_at = NULL, parked_changes = c.parked_changes + 1,
    owner = NULL, locked_until = NULL, fence = c.fence >> 32 ` + newFence + `, history = NULL,
    awaits_repair = $3::text[] IS NOT NULL AND c.subscription <> ALL($3)
  FROM n WHERE $2 OR c.history IS DISTINCT FROM $1::uuid
)` + countUnreadSQL

// highestSQL is the highest number that anything has.
const highestSQL = `
SELECT coalesce(greatest(
  (SELECT max(seq) FROM {stream}), (SELECT max(seq) FROM {parked}), (SELECT max(greatest(q1, q2, hi, pos)) FROM {shards})), 0)`

// raiseSequenceSQL keeps numbers from being drawn twice: it goes past all there are, and past those of
// transactions that have not committed. The room also covers what producers draw while this runs: it must
// not set the sequence back itself. $1 the highest number there is.
const raiseSequenceSQL = `
SELECT setval({'stream_seq'}, greatest($1, coalesce(pg_sequence_last_value({'stream_seq'}), 0)) + 1000000)`
