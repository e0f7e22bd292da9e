package pgstore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/layouts"
)

// WaitingLimit is where the counts of Waiting stop.
const WaitingLimit = 1000

// Waiting is what waits in a table for longer than it should, and whether anybody works on
// it.
type Waiting struct {
	// Due are the events that have been due for longer than asked, and DueFor is for how long the
	// first of them has been.
	Due    int64
	DueFor time.Duration
	// Held is whether a relay holds events now, as far as the table shows it. Under row locks the
	// table shows nothing.
	Held bool
	// Expired are the events whose lease has been over for longer than asked, and ExpiredFor is
	// for how long the first one's has been.
	Expired    int64
	ExpiredFor time.Duration
	// Timeless are the events that wait, or are held, without a time: no claim ever takes them.
	Timeless int64
	// Revive is the statement that makes them due.
	Revive string
	// Unknown are the rows whose status is none that the layout names: nobody takes them. It is outbox.NotCounted where
	// counting would read the whole of a large table.
	Unknown int64
	// FindUnknown is the statement that shows some of them; empty where there is no status.
	FindUnknown string
}

// FindWaiting looks for events that wait for longer than patience. Lease is that of the relays.
// The transaction's later statements are planned as a claim's.
func FindWaiting(ctx context.Context, tx pgx.Tx, l layouts.Layout, lease, patience time.Duration) (Waiting, error) {
	c := &compiler{l: &layout{l}, config: &Config{Lease: lease}}
	w := Waiting{Revive: c.revive()}
	statement := c.waiting()
	if _, err := tx.Exec(ctx, inIndexOrder); err != nil {
		return w, fmt.Errorf("outbox: look for events of %s that wait: %w", l.Table, err)
	}
	var due, expired float64
	err := tx.QueryRow(ctx, statement.sql, statement.with(patience.Seconds())...).
		Scan(&w.Due, &due, &w.Held, &w.Expired, &expired, &w.Timeless)
	if err != nil {
		return w, fmt.Errorf("outbox: look for events of %s that wait: %w", l.Table, err)
	}
	if l.Done == layouts.DoneStatus {
		w.FindUnknown = fmt.Sprintf("SELECT * FROM %s WHERE %s LIMIT 10;", c.table(), c.unknown(func(column layouts.Column) string { return quote(column.Name) }))
		if w.Unknown, err = c.unknownCount(WaitingLimit).countIfCheap(ctx, tx); err != nil {
			return w, fmt.Errorf("outbox: look for rows of %s in no known state: %w", l.Table, err)
		}
	}
	w.DueFor, w.ExpiredFor = time.Duration(due*float64(time.Second)), time.Duration(expired*float64(time.Second))
	return w, nil
}

// waiting asks what Waiting answers. $1 patience in seconds.
func (c *compiler) waiting() *statement {
	c.begin(1)
	columns := &c.l.Columns
	order := c.order()
	held, expired := "false", "SELECT NULL::timestamptz AS at WHERE false"
	switch c.l.Hold {
	case layouts.HoldLease:
		held = fmt.Sprintf("EXISTS (SELECT FROM %s AS t WHERE %s AND %s > now())", c.table(), c.leased(), t(columns.LockedUntil))
		expired = c.late(columns.LockedUntil, c.leased())
	case layouts.HoldDefer:
		// A row that is held looks like one that is scheduled soon.
		held = fmt.Sprintf("EXISTS (SELECT FROM %s AS t WHERE %s AND %s > now() AND %s <= now() + %s)",
			c.table(), c.pending(), t(columns.NextAttemptAt), t(columns.NextAttemptAt), c.lease())
	case layouts.HoldRowLock:
	}
	return c.end(fmt.Sprintf(`WITH due AS (
  %s
), expired AS (
  %s
), timeless AS (
  %s
)
SELECT (SELECT count(*) FROM due), coalesce(extract(epoch FROM now() - (SELECT min(at) FROM due WHERE isfinite(at))), 0)::float8,
  %s,
  (SELECT count(*) FROM expired), coalesce(extract(epoch FROM now() - (SELECT min(at) FROM expired WHERE isfinite(at))), 0)::float8,
  (SELECT count(*) FROM timeless)`,
		c.late(order, c.pending()+" AND "+c.notDead()), expired, c.timeless(WaitingLimit), held))
}

// late are the first rows of a kind whose time was more than $1 seconds ago.
func (c *compiler) late(column layouts.Column, kind string) string {
	return fmt.Sprintf("SELECT %s AS at FROM %s AS t WHERE %s AND %s < now() - make_interval(secs => $1::float8) ORDER BY %s LIMIT %d",
		t(column), c.table(), kind, t(column), t(column), WaitingLimit)
}

// timeless are rows that a time decides about and that have none, up to limit of each kind.
func (c *compiler) timeless(limit int) string {
	columns := &c.l.Columns
	kinds := "SELECT WHERE false"
	if next := columns.NextAttemptAt; !next.IsZero() {
		kinds = fmt.Sprintf("(SELECT FROM %s AS t WHERE %s AND %s IS NULL AND %s LIMIT %d)", c.table(), c.pending(), t(next), c.mine(), limit)
	}
	if c.l.Hold == layouts.HoldLease && c.l.Done == layouts.DoneStatus {
		// Not IS NULL: an index on the lease would be read through all rows that nobody holds.
		kinds += fmt.Sprintf("\n  UNION ALL (SELECT FROM %s AS t WHERE %s AND coalesce(%s, '-infinity') = '-infinity' AND %s LIMIT %d)",
			c.table(), c.leased(), t(columns.LockedUntil), c.mine(), limit)
	}
	return kinds
}

// revive makes timeless rows due.
func (c *compiler) revive() string {
	columns := &c.l.Columns
	plain := func(column layouts.Column) string { return quote(column.Name) }
	sql := ""
	if next := columns.NextAttemptAt; !next.IsZero() {
		sql = fmt.Sprintf("UPDATE %s SET %s = now() WHERE %s AND %s IS NULL;", c.table(), plain(next), c.pendingBy(plain), plain(next))
	}
	if c.l.Hold == layouts.HoldLease && c.l.Done == layouts.DoneStatus {
		sql += fmt.Sprintf(" UPDATE %s SET %s = now() WHERE %s AND %s IS NULL;",
			c.table(), plain(columns.LockedUntil), c.leasedBy(plain), plain(columns.LockedUntil))
	}
	return sql
}

// DeliveredBefore counts the events that were delivered more than a retention ago, up to
// WaitingLimit.
func DeliveredBefore(ctx context.Context, tx pgx.Tx, l layouts.Layout, retention time.Duration) (n int64, err error) {
	c := &compiler{l: &layout{l}, config: &Config{}}
	c.begin(1)
	sql := fmt.Sprintf("SELECT count(*) FROM (SELECT FROM %s AS t WHERE %s LIMIT %d) AS old", c.table(), c.deliveredBefore(), WaitingLimit)
	if err := tx.QueryRow(ctx, sql, retention.Seconds()).Scan(&n); err != nil {
		return 0, fmt.Errorf("outbox: look for events of %s that should have been purged: %w", l.Table, err)
	}
	return n, nil
}
