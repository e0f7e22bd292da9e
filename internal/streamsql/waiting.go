package streamsql

// Waiting says what waits for a subscription, $1, and who could take it: the number of its relays, and of those that wait for
// their destination; the ages of the oldest unread event and of the first parked one that is due; how many shards have an
// owner whose lease is over, and for how long the first has. %s are the conditions of the subscription's filter. Times are in
// seconds, and zero if there is none.
const Waiting = `
SELECT (SELECT count(*) FROM {relays} AS r WHERE r.subscription = $1 AND ` + Present + `),
  (SELECT count(*) FROM {relays} AS r WHERE r.subscription = $1 AND ` + Waits + `),
  coalesce(extract(epoch FROM now() - (SELECT min(o.created_at) FROM {shards} AS c CROSS JOIN LATERAL (
    SELECT e.created_at FROM {unread} AS e WHERE true%s LIMIT 1) AS o
    WHERE c.subscription = $1)), 0)::float8,
  greatest(coalesce(extract(epoch FROM now() - (SELECT min(next_attempt_at) FROM {parked}
    WHERE subscription = $1 AND state = 'retry')), 0), 0)::float8,
  (SELECT count(*) FROM {shards} WHERE subscription = $1 AND owner IS NOT NULL AND locked_until < now()),
  coalesce(extract(epoch FROM now() - (SELECT min(locked_until) FROM {shards}
    WHERE subscription = $1 AND owner IS NOT NULL AND locked_until < now())), 0)::float8`

// Blocked groups the keys that wait by subscription and by the state of the event at their head, with an example: how many
// keys there are, and how many events behind their heads; the key, id and last error of the head that was parked first, and
// how many seconds ago that was. Both counts stop, at 1,000 keys and 1,000 events of a key. What gates a key is at its head,
// unless something else is before it.
const Blocked = `
WITH head AS MATERIALIZED (
  SELECT p.subscription, p.shard, p.seq, p.key, p.id, p.state, p.last_error, p.parked_at FROM {parked} AS p
  WHERE p.gates AND p.key IS NOT NULL AND (p.state IN ('dead', 'held') OR p.state = 'retry' AND p.attempts > 0)
    AND NOT EXISTS (SELECT FROM {parked} AS b
      WHERE b.subscription = p.subscription AND b.shard = p.shard AND b.key = p.key AND b.gates AND b.seq < p.seq)
  LIMIT 1000
), blocked AS (
  SELECT head.*, behind.events FROM head CROSS JOIN LATERAL (
    SELECT count(*) AS events FROM (SELECT FROM {parked} AS w
      WHERE w.subscription = head.subscription AND w.shard = head.shard AND w.key = head.key AND w.gates AND w.seq > head.seq
      LIMIT 1000) AS w) AS behind
)
SELECT subscription, state, count(*), sum(events)::bigint, (array_agg(key ORDER BY parked_at))[1], (array_agg(id::text ORDER BY parked_at))[1],
  coalesce((array_agg(last_error ORDER BY parked_at))[1], ''), extract(epoch FROM now() - min(parked_at))::float8
FROM blocked WHERE events > 0 OR state <> 'retry'
GROUP BY subscription, state ORDER BY subscription, state`
