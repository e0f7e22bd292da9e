// Package streamsql writes the names of a stream's tables into SQL, for the packages that look at them.
package streamsql

import (
	"strings"

	"github.com/packfinderz/outbox/internal/sqlname"
)

// OfXid are the rows e of a transaction x, by seq within a shard. It is not written as an equality: the index by xid is
// then the only one with this order.
const OfXid = `e.xid >= x AND e.xid <= x ORDER BY e.xid, e.shard, e.seq`

// Behind is the condition that a cursor c has gone past a row e of its shard: s1 sees it, or it
// is in the window and behind the position. What was passed is delivered, or parked.
const Behind = `(pg_visible_in_snapshot(e.xid, c.s1) OR (c.s2 IS NOT NULL AND e.seq <= c.pos AND pg_visible_in_snapshot(e.xid, c.s2)))`

// Unread are the rows that a cursor c has not passed, the oldest first but for those of a few
// transactions. They are all that is not Behind, in pieces that indexes lead to: nobody walks
// over what an open window has settled already, which may be millions.
//
//   - Up to q1: of transactions that ran at s1, which s2 does not see or the late part has not
//     come to.
//   - Between q1 and the position: what s2 does not see. That is of transactions that ran at s2, or
//     began later and so drew their seqs above q2.
//   - Above the position, and above q1: whatever s1 does not see.
const Unread = `(
  SELECT e.* FROM pg_snapshot_xip(c.s1) AS x CROSS JOIN LATERAL (
    SELECT e.* FROM {stream} AS e
    WHERE e.shard = c.shard AND e.seq <= c.q1 AND (c.s2 IS NULL OR e.seq > c.pos OR NOT pg_visible_in_snapshot(x, c.s2)) AND ` + OfXid + `
  ) AS e
  UNION ALL
  SELECT e.* FROM pg_snapshot_xip(c.s2) AS x CROSS JOIN LATERAL (
    SELECT e.* FROM {stream} AS e WHERE e.shard = c.shard AND e.seq > c.q1 AND e.seq <= c.pos AND ` + OfXid + `
  ) AS e
  UNION ALL
  (SELECT e.* FROM {stream} AS e
  WHERE e.shard = c.shard AND e.seq > greatest(c.q1, c.q2) AND e.seq <= c.pos AND e.xid >= pg_snapshot_xmax(c.s2)
  ORDER BY e.seq)
  UNION ALL
  (SELECT e.* FROM {stream} AS e
  WHERE e.shard = c.shard AND e.seq > greatest(c.q1, CASE WHEN c.s2 IS NOT NULL THEN c.pos END) AND NOT pg_visible_in_snapshot(e.xid, c.s1)
  ORDER BY e.seq)
)`

// eventColumns are the columns that make a message, of outbox_stream and outbox_parked alike.
const eventColumns = `id, namespace, topic, type, key, aggregate_type, aggregate_id, tenant_id, headers, content_type, payload, not_before, max_attempts, created_at`

// of is eventColumns of one table of a statement.
func of(alias string) string {
	return alias + "." + strings.ReplaceAll(eventColumns, ", ", ", "+alias+".")
}

// Table is the name of one of the stream's tables or functions; an empty schema is that of the search path.
func Table(schema, name string) string { return sqlname.Qualified(schema, name) }

// Names writes the stream's tables into a statement: {shards} becomes "schema"."outbox_shards". {behind} is the condition
// Behind, and {unread} are the rows Unread.
func Names(schema, sql string) string {
	list := []string{"{behind}", Behind, "{unread}", strings.ReplaceAll(Unread, "{stream}", Table(schema, "outbox_stream")),
		"{event}", eventColumns, "{e.event}", of("e"), "{p.event}", of("p"), "{f.event}", of("f")}
	for _, table := range []string{
		"settings", "stream", "stream_seq", "subscriptions", "shards", "relays", "parked", "deliveries", "dedupe", "history", "doubts",
	} {
		name := Table(schema, "outbox_"+table)
		// A regclass is written as a string.
		list = append(list, "{"+table+"}", name, "{'"+table+"'}", "'"+strings.ReplaceAll(name, "'", "''")+"'::regclass")
	}
	return strings.NewReplacer(append(list, "{stamp}", Table(schema, "outbox_stamp"))...).Replace(sql)
}
