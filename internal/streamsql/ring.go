package streamsql

import (
	"fmt"
	"strings"
)

// Slot is the name of a slot's table.
func Slot(schema string, number int) string {
	return Table(schema, fmt.Sprintf("outbox_stream_%d", number))
}

// SlotReaders finds the subscriptions that have not settled every event of a slot, {slot}. Only visibility tells: not the
// highest seq, nor the time, which is that of a transaction's start. What s1 does not see is from its xmax on, or listed: asked
// so, the index finds it, however long a transaction of the server has been open. A subscription that was not made to the end
// does not count: it would keep every slot for ever. One that is being made begins at the oldest event that is kept then. One
// that lacks cursors has not settled what their shards hold.
const SlotReaders = `
SELECT DISTINCT c.subscription FROM {shards} AS c JOIN {subscriptions} AS s ON s.name = c.subscription
WHERE s.ready AND (EXISTS (SELECT FROM {slot} AS e WHERE e.xid >= pg_snapshot_xmax(c.s1) AND e.shard = c.shard)
  OR EXISTS (SELECT FROM pg_snapshot_xip(c.s1) AS x JOIN {slot} AS e ON e.xid = x WHERE e.shard = c.shard))
UNION
SELECT s.name FROM {subscriptions} AS s, {settings} AS o
WHERE s.ready AND (SELECT count(*) FROM {shards} AS c WHERE c.subscription = s.name AND c.shard < o.shards) < o.shards
ORDER BY 1`

// SlotAges lists the slots with the ages of their oldest events, in seconds; NULL for an empty one. It takes the first event in
// the order of xids: that is near enough to the oldest, and the index finds it.
func SlotAges(schema string, slots int) string {
	parts := make([]string, slots)
	for slot := range parts {
		parts[slot] = fmt.Sprintf("\nSELECT %d, extract(epoch FROM now() - (SELECT e.created_at FROM %s AS e ORDER BY e.xid LIMIT 1))::float8", slot, Slot(schema, slot))
	}
	return strings.Join(parts, "\nUNION ALL")
}

// Ring is the number of slots, their length, and the ages of the oldest rows beside the log: of what was settled, and of the
// dedupe keys. All times are in seconds; the indexes on the times answer the last two.
const Ring = `
SELECT slots, slot_seconds::float8, coalesce(extract(epoch FROM now() - (SELECT min(settled_at) FROM {deliveries})), 0)::float8,
  coalesce(extract(epoch FROM now() - (SELECT min(created_at) FROM {dedupe})), 0)::float8
FROM {settings}`
