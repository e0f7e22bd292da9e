package streamsql

// Which server wrote a row of the log.
const (
	// NativeStamps joins the two rows of a stamping that this server wrote: each has the xid that wrote the other.
	NativeStamps = `{history} AS a JOIN {history} AS b ON b.history = a.history AND b.stamp > a.stamp
  AND a.xmin::text::bigint = b.stamp & 4294967295 AND b.xmin::text::bigint = a.stamp & 4294967295`

	// Born begins a WITH: n is the present snapshot, and born has the xid that made each slot, or an older one that is known to
	// be this server's. The row of a system column is never updated.
	Born = `n AS MATERIALIZED (
  SELECT pg_current_snapshot() AS s, pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS xmax
), born AS MATERIALIZED (
  SELECT i.inhrelid AS slot, least(n.xmax - ((n.xmax - a.xmin::text::bigint) & 4294967295),
    (SELECT min(a.stamp) FROM ` + NativeStamps + `)) AS xid
  FROM n, pg_inherits AS i JOIN pg_attribute AS a ON a.attrelid = i.inhrelid AND a.attname = 'xmin'
  WHERE i.inhparent = {'stream'}
)`

	// Alien is true for a row e that was copied in. The xmin of a row that this server wrote is that of the transaction in its
	// column xid, or of a later subtransaction, and neither is older than the slot. A row that agrees may be copied all the same.
	Alien = `(e.xid::text::bigint < born.xid OR e.xid::text::bigint > n.xmax - ((n.xmax - e.xmin::text::bigint) & 4294967295))`

	// Loaded is when the newest event that was copied in was emitted, NULL if there is none, and how many events were not copied
	// in, as far as that can be told. It reads the whole log.
	Loaded = `
WITH ` + Born + `
SELECT max(e.created_at) FILTER (WHERE ` + Alien + ` AND e.xid <> '1'), count(*) FILTER (WHERE NOT ` + Alien + `)
FROM n, {stream} AS e JOIN born ON born.slot = e.tableoid`
)
