package pgstream

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/packfinderz/outbox/internal/streamsql"
)

// statements are the store's SQL. They are data, so that a test can put a fault back and
// see that it is found.
type statements struct {
	// refresh and open move a cursor to a new window; late and main read its two parts, but for
	// what came with open. openPunctual opens windows that cannot have a late part.
	refresh, open, openPunctual, late, main string
	// filterArgs are the last arguments of open, late and main.
	filterArgs []any
	// settle moves cursors over pages; settlePark parks events in the same statement.
	settle, settlePark string
	// tend keeps this relay's leases; take and giveUp change them; reload reads cursors again.
	tend, take, giveUp, reload, leave string
	// wait lists this relay as one that waits for its destination.
	wait string
	// shorten ends leases of others that a clock that was set back has made too long.
	shorten string
	// gated are the keys that wait; due the parked events to try, and nextDue when there will be
	// more; promote makes the first waiting event of a key due.
	gated, due, nextDue, promote string
	// lock, settleParked and stillGated settle parked events.
	lock, settleParked, stillGated string
	// countStopped counts the events that wait for a topic; freeStopped makes some of them due.
	countStopped, freeStopped string
	// lockSlot and unread come before a slot, {slot}, is emptied.
	lockSlot, unread string
}

// names writes the stream's tables into a statement: {shards} becomes "schema"."outbox_shards".
func (s Stream) names(sql string) string { return streamsql.Names(s.Schema, sql) }

// The first parameter of a filter, in open, and in late and main.
const (
	openFilterParam = 6
	filterParam     = 7
)

// refilter writes the statements anew that depend on the filter. They are the reader's.
func (sql *statements) refilter(s Stream, shape Shape, filter Filter) {
	var conditions string
	conditions, sql.filterArgs = filter.conditions(filterParam)
	opening, _ := filter.conditions(openFilterParam)
	opens := func(look, punctual string) string {
		shaped := strings.NewReplacer("{recent}", recent(shape), "{slots}", strconv.Itoa(shape.Slots))
		return s.names(shaped.Replace(fmt.Sprintf(openSQL, opening, look, punctual)))
	}
	sql.open, sql.openPunctual = opens(lateLookSQL, punctualSQL), opens("", "true")
	sql.late, sql.main = s.names(fmt.Sprintf(lateSQL, conditions)), s.names(fmt.Sprintf(mainSQL, conditions))
}

func (s Stream) statements(shape Shape, filter Filter) *statements {
	sql := &statements{
		refresh: s.names(refreshSQL),
		settle:  s.names(fmt.Sprintf(settleSQL, "")), settlePark: s.names(fmt.Sprintf(settleSQL, parkSQL)),
		tend: s.names(tendSQL), take: s.names(takeSQL), giveUp: s.names(giveUpSQL), reload: s.names(reloadSQL), leave: s.names(leaveSQL),
		wait: s.names(waitSQL), shorten: s.names(shortenSQL),
		gated: s.names(gatedSQL), due: s.names(dueSQL), nextDue: s.names(nextDueSQL), promote: s.names(promoteSQL),
		lock: s.names(lockSQL), settleParked: s.names(settleParkedSQL), stillGated: s.names(stillGatedSQL),
		countStopped: s.names(countStoppedSQL), freeStopped: s.names(freeStoppedSQL),
		lockSlot: lockSlotSQL, unread: s.names(streamsql.SlotReaders),
	}
	sql.refilter(s, shape, filter)
	return sql
}

// Settling moves a cursor only if it is exactly where this relay last saw it: the same
// fence, position and window. Otherwise the shard is somebody else's, or has moved.
//
// $1 subscription, $2 worker, $3 lease in seconds; arrays, one entry per shard: $4 shards,
// $5 fences, $6 pos, $7 s2, $8 new pos, $9 closes, $10 part, $11 s1, $12 first seq, zero
// where the page was empty, $13 last seq. The rest belongs to parkSQL.
const (
	settleSQL = `
WITH u AS MATERIALIZED (
  SELECT * FROM unnest($4::smallint[], $5::bigint[], $6::bigint[], $7::text[], $8::bigint[], $9::boolean[],
    $10::text[], $11::text[], $12::bigint[], $13::bigint[])
    AS u(shard, fence, pos, s2, new_pos, closes, part, s1, first_seq, last_seq)
), moved AS (
  UPDATE {shards} AS c SET
    pos = u.new_pos,
    s1 = CASE WHEN u.closes THEN c.s2 ELSE c.s1 END,
    q1 = CASE WHEN u.closes THEN c.q2 ELSE c.q1 END,
    s2 = CASE WHEN u.closes THEN NULL ELSE c.s2 END,
    q2 = CASE WHEN u.closes THEN NULL ELSE c.q2 END,
    locked_until = greatest(c.locked_until, now() + make_interval(secs => $3))
  FROM u
  WHERE c.subscription = $1 AND c.shard = u.shard AND c.fence = u.fence AND c.pos = u.pos AND c.s2::text = u.s2
  RETURNING c.shard, c.parked_changes
), logged AS (
  INSERT INTO {deliveries} (subscription, shard, part, s1, s2, from_seq, to_seq, worker)
  SELECT $1, u.shard, u.part, u.s1::pg_snapshot, u.s2::pg_snapshot, u.first_seq, u.last_seq, $2
  FROM moved JOIN u USING (shard) WHERE u.first_seq > 0
)%s
SELECT shard, parked_changes, (SELECT count(*) FROM {relays} WHERE subscription = $1 AND alive_until > now()) FROM moved`

	// parkSQL copies events that were not delivered. Arrays, one entry per event: $14 shards,
	// $15 seqs, $16 states, $17 gates, $18 attempts, $19 delays in seconds, NULL for an event
	// that waits for its not_before, $20 errors, $21 reasons, $22 routes, $23 slots. An event that a
	// person has parked already stays as it is; another one with its number fails the statement (isTwice).
	parkSQL = `, parking AS (
  INSERT INTO {parked} AS was (subscription, shard, seq, state, gates, attempts, next_attempt_at, last_error, reason, route, {event})
  SELECT $1, e.shard, e.seq, p.state, p.gates, p.attempts,
    CASE WHEN p.state = 'retry' THEN coalesce(now() + make_interval(secs => p.delay), e.not_before) END,
    p.error, p.reason, p.route, {e.event}
  FROM unnest($14::smallint[], $15::bigint[], $16::text[], $17::boolean[], $18::integer[], $19::float8[], $20::text[], $21::text[], $22::text[], $23::smallint[])
    AS p(shard, seq, state, gates, attempts, delay, error, reason, route, slot)
  JOIN moved ON moved.shard = p.shard
  JOIN {stream} AS e ON e.slot = p.slot AND e.shard = p.shard AND e.seq = p.seq
  ON CONFLICT (subscription, shard, seq) DO UPDATE SET seq = NULL WHERE was.id <> excluded.id
)`
)

// Leases. A relay keeps itself listed and its shards locked; free and expired shards are
// taken with a new fence, and so are its own that it does not know of: the answer to an
// earlier take was lost. Several shards are always updated in the order of their numbers,
// so that two statements wait for each other instead of deadlocking.
const (
	// newFence is never given out twice, not even when a crash takes back the commit that made
	// it, or a subscription is dropped and made again: what is under way with the old one must
	// find nothing. Its high half is the generation of the definition by which the relay reads, its
	// low half differs from the last one.
	newFence = `<< 32 | (c.fence + 1 + floor(random() * 1000000000)::bigint & 4294967295)`

	// ofGeneration is the condition that the definition is still the one of a generation.
	ofGeneration = `EXISTS (SELECT FROM {subscriptions} WHERE name = $1 AND ready AND generation = `

	// $1 subscription, $2 worker, $3 lease in seconds, $4 host, $5 pid, $6 shards, $7 fences,
	// $8 generation of this relay.
	tendSQL = `
WITH me AS (
  INSERT INTO {relays} AS r (subscription, worker, host, pid, alive_until, lease_seconds, generation)
  VALUES ($1, $2, $4, $5, now() + make_interval(secs => $3), $3, $8)
  ON CONFLICT (subscription, worker) DO UPDATE
    SET alive_until = excluded.alive_until, waits_until = NULL, lease_seconds = excluded.lease_seconds, generation = excluded.generation
), kept AS (
  UPDATE {shards} AS c SET locked_until = now() + make_interval(secs => $3)
  FROM unnest($6::smallint[], $7::bigint[]) AS u(shard, fence)
  WHERE c.subscription = $1 AND c.shard = u.shard AND c.fence = u.fence AND c.owner = $2
  RETURNING c.shard
)
SELECT
  (SELECT count(*) FROM {relays} WHERE subscription = $1 AND worker <> $2 AND alive_until > now()) + 1,
  (SELECT count(*) FROM {relays} WHERE subscription = $1 AND worker < $2 AND alive_until > now()),
  (SELECT count(*) FROM {shards} WHERE subscription = $1),
  (SELECT count(*) FROM {shards} AS c WHERE c.subscription = $1 AND (c.owner IS NULL OR c.locked_until < now() OR c.owner = $2 AND c.shard <> ALL(coalesce($6::smallint[], '{}')))),
  coalesce((SELECT array_agg(shard) FROM kept), '{}'),
  EXISTS (SELECT` + farShards + `) OR EXISTS (SELECT` + farRelays + `),
  coalesce((SELECT generation FROM {subscriptions} WHERE name = $1), -1)`

	// $1 subscription, $2 worker, $3 lease in seconds, $4 how many, $5 shards not to take,
	// $6 generation. Nothing is taken under a definition that is no longer the subscription's.
	takeSQL = `
UPDATE {shards} AS c SET owner = $2, fence = $6::bigint ` + newFence + `, locked_until = now() + make_interval(secs => $3)
FROM (
  SELECT c.shard FROM {shards} AS c
  WHERE c.subscription = $1 AND c.shard <> ALL(coalesce($5::smallint[], '{}')) AND (c.owner IS NULL OR c.locked_until < now() OR c.owner = $2)
    AND ` + ofGeneration + `$6)
  ORDER BY c.shard
  LIMIT $4
  FOR UPDATE SKIP LOCKED
) AS free
WHERE c.subscription = $1 AND c.shard = free.shard
RETURNING c.shard, c.fence, c.s1::text, c.q1, coalesce(c.s2::text, ''), coalesce(c.q2, 0), c.hi, c.pos, c.parked_changes`

	// The cursors of this relay's shards, when it does not know them any more. A new fence
	// stops a statement of the session it has lost that may still be on its way: it would open
	// a window behind our back. $1 subscription, $2 shards, $3 fences, $4 generation.
	reloadSQL = `
UPDATE {shards} AS c SET fence = $4::bigint ` + newFence + `
FROM unnest($2::smallint[], $3::bigint[]) AS u(shard, fence)
WHERE c.subscription = $1 AND c.shard = u.shard AND c.fence = u.fence AND ` + ofGeneration + `$4)
RETURNING c.shard, c.fence, c.s1::text, c.q1, coalesce(c.s2::text, ''), coalesce(c.q2, 0), c.hi, c.pos, c.parked_changes`

	// $1 subscription, $2 shards, $3 fences.
	giveUpSQL = `
UPDATE {shards} AS c SET owner = NULL, locked_until = NULL
FROM unnest($2::smallint[], $3::bigint[]) AS u(shard, fence)
WHERE c.subscription = $1 AND c.shard = u.shard AND c.fence = u.fence`

	// $1 subscription, $2 worker.
	leaveSQL = `DELETE FROM {relays} WHERE subscription = $1 AND worker = $2`
)

// Parked events. The first gating row of a key is its head; only heads are tried, and what
// gates nothing at its own time. A head is never left waiting: whoever removes one promotes
// the next, under the lock of the shard's row.
//
// A session plans these once, perhaps when nothing is parked, and then runs them when
// thousands are. So they leave the planner no choice: rows are found one by one, by the one
// index that has the order asked for, and written by their place. A row that somebody else
// changes at that moment is left to the next time.
const (
	// firstOfKey is the first gating row f of a key u. It is not written as an equality, or the
	// planner could walk a shard by seq and look for the key.
	firstOfKey = `f.subscription = $1 AND f.shard = u.shard AND f.key >= u.key AND f.key <= u.key AND f.gates
    ORDER BY f.key, f.seq LIMIT 1`

	// $1 subscription, $2 shards.
	gatedSQL = `SELECT DISTINCT shard, key FROM {parked} WHERE subscription = $1 AND shard = ANY($2) AND gates AND key IS NOT NULL`

	// $1 subscription, $2 shards, $3 limit per shard, $4 followers per head. A head that has
	// not failed brings those that wait behind it along: they follow it in the same batch.
	dueSQL = `
WITH head AS MATERIALIZED (
  SELECT p.shard, p.seq, p.key, p.gates, p.attempts, p.next_attempt_at
  FROM unnest($2::smallint[]) AS u(shard)
  CROSS JOIN LATERAL (
    SELECT p.shard, p.seq, p.key, p.gates, p.attempts, p.next_attempt_at
    FROM {parked} AS p
    WHERE p.subscription = $1 AND p.shard = u.shard AND p.state = 'retry' AND p.next_attempt_at <= now()
      AND (NOT p.gates OR p.key IS NULL OR NOT EXISTS (
        SELECT FROM {parked} AS b
        WHERE b.subscription = $1 AND b.shard = p.shard AND b.key = p.key AND b.seq < p.seq AND b.gates))
    ORDER BY p.next_attempt_at
    LIMIT $3
  ) AS p
)
SELECT p.shard, p.seq, p.leads, p.state = 'waiting', p.gates, p.attempts, CASE WHEN p.replayed THEN p.parked_at END, {p.event}
FROM head CROSS JOIN LATERAL (
  (SELECT f.shard, f.seq, true AS leads, f.state, f.gates, f.attempts, f.replayed, f.parked_at, {f.event}
   FROM {parked} AS f WHERE f.subscription = $1 AND f.shard = head.shard AND f.seq = head.seq)
  UNION ALL
  (SELECT f.shard, f.seq, false, f.state, f.gates, f.attempts, f.replayed, f.parked_at, {f.event}
   FROM {parked} AS f
   WHERE head.gates AND head.attempts = 0
     AND f.subscription = $1 AND f.shard = head.shard AND f.key = head.key AND f.seq > head.seq AND f.gates
   ORDER BY f.seq
   LIMIT $4)
) AS p`

	// $1 subscription, $2 shards.
	nextDueSQL = `
SELECT extract(epoch FROM min(p.next_attempt_at) - now())::float8
FROM unnest($2::smallint[]) AS u(shard)
CROSS JOIN LATERAL (
  SELECT p.next_attempt_at FROM {parked} AS p
  WHERE p.subscription = $1 AND p.shard = u.shard AND p.state = 'retry' AND p.next_attempt_at > now()
  ORDER BY p.next_attempt_at
  LIMIT 1
) AS p`

	// $1 subscription, $2 shards, $3 keys.
	promoteSQL = `
WITH head AS MATERIALIZED (
  SELECT f.at FROM unnest($2::smallint[], $3::text[]) AS u(shard, key)
  CROSS JOIN LATERAL (SELECT f.ctid AS at, f.state FROM {parked} AS f WHERE ` + firstOfKey + `) AS f
  WHERE f.state = 'waiting'
)
UPDATE {parked} AS p SET state = 'retry', next_attempt_at = now(), changed_at = now()
FROM head WHERE p.ctid = head.at`

	// $1 subscription, $2 shards, $3 fences.
	lockSQL = `
SELECT c.shard FROM {shards} AS c JOIN unnest($2::smallint[], $3::bigint[]) AS u(shard, fence) ON c.shard = u.shard AND c.fence = u.fence
WHERE c.subscription = $1
ORDER BY c.shard
FOR UPDATE OF c`

	// $1 subscription, $2 worker, $3 shards, $4 fences; arrays, one entry per event: $5 shards,
	// $6 seqs, $7 states, '' for delivered, $8 gates, $9 attempts, $10 delays in seconds,
	// $11 errors, $12 reasons, $13 routes.
	settleParkedSQL = `
WITH ours AS MATERIALIZED (
  SELECT c.shard FROM {shards} AS c JOIN unnest($3::smallint[], $4::bigint[]) AS u(shard, fence) ON c.shard = u.shard AND c.fence = u.fence
  WHERE c.subscription = $1
), o AS MATERIALIZED (
  SELECT o.*, f.at
  FROM unnest($5::smallint[], $6::bigint[], $7::text[], $8::boolean[], $9::integer[], $10::float8[], $11::text[], $12::text[], $13::text[])
    AS o(shard, seq, state, gates, attempts, delay, error, reason, route)
  JOIN ours ON ours.shard = o.shard
  CROSS JOIN LATERAL (
    SELECT f.ctid AS at FROM {parked} AS f WHERE f.subscription = $1 AND f.shard = o.shard AND f.seq = o.seq LIMIT 1
  ) AS f
), done AS (
  DELETE FROM {parked} AS p USING o
  WHERE o.state = '' AND p.ctid = o.at
  RETURNING p.shard, p.seq
), logged AS (
  INSERT INTO {deliveries} (subscription, shard, part, from_seq, to_seq, worker)
  SELECT $1, shard, 'parked', seq, seq, $2 FROM done
)
UPDATE {parked} AS p SET state = o.state, gates = o.gates, attempts = o.attempts,
  next_attempt_at = CASE WHEN o.state = 'retry' THEN now() + make_interval(secs => o.delay) END,
  last_error = coalesce(o.error, p.last_error), reason = o.reason, route = o.route, changed_at = now()
FROM o
WHERE o.state <> '' AND p.ctid = o.at AND p.state IN ('retry', 'waiting')`

	// $1 subscription, $2 shards, $3 keys.
	stillGatedSQL = `
SELECT u.shard, u.key FROM unnest($2::smallint[], $3::text[]) AS u(shard, key)
WHERE (SELECT true FROM {parked} AS f WHERE ` + firstOfKey + `)`
)
