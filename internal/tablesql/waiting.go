package tablesql

import (
	"cmp"
	"fmt"
	"time"

	"github.com/packfinderz/outbox/layouts"
)

// Limit is where Waiting and OldDelivered stop counting.
const Limit = 1000

// Waiting counts the events that have waited for more than $1 seconds, and says whether anybody works on them. Lease is that
// of the relays. It answers in one row: how many events are due, and for how many seconds the first has been; whether a
// relay holds events, as far as the table shows it, which it does not under row locks; how many leases have run out, and for
// how many seconds the first has; how many events have no time, so that no claim ever takes them.
func (l *Layout) Waiting(lease time.Duration) string {
	held, expired := "false", "SELECT NULL::timestamptz AS at WHERE false"
	switch l.Hold {
	case layouts.HoldLease:
		held = fmt.Sprintf("EXISTS (SELECT FROM %s AS t WHERE %s AND %s > now())", l.Events(), l.Leased(T), T(l.Columns.LockedUntil))
		expired = l.late(l.Columns.LockedUntil, l.Leased(T))
	case layouts.HoldDefer:
		// A row that is held looks like one that is scheduled soon.
		held = fmt.Sprintf("EXISTS (SELECT FROM %s AS t WHERE %s AND %s > now() AND %[3]s <= now() + make_interval(secs => %f))",
			l.Events(), l.Pending(T), T(l.Columns.NextAttemptAt), lease.Seconds())
	case layouts.HoldRowLock:
	}
	return fmt.Sprintf(`WITH due AS (
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
		l.late(l.Order(), l.Pending(T)+" AND "+l.NotDead()), expired, cmp.Or(l.Timeless("true", Limit), "SELECT WHERE false"), held)
}

// late selects the first rows of a kind whose time was more than $1 seconds ago.
func (l *Layout) late(column layouts.Column, kind string) string {
	return fmt.Sprintf("SELECT %[1]s AS at FROM %[2]s AS t WHERE %[3]s AND %[1]s < now() - make_interval(secs => $1::float8) ORDER BY %[1]s LIMIT %[4]d",
		T(column), l.Events(), kind, Limit)
}

// Revive makes rows due that have no time.
func (l *Layout) Revive() string {
	sql := ""
	if next := Name(l.Columns.NextAttemptAt); !l.Columns.NextAttemptAt.IsZero() {
		sql = fmt.Sprintf("UPDATE %s SET %s = now() WHERE %s AND %[2]s IS NULL;", l.Events(), next, l.Pending(Name))
	}
	if l.Hold == layouts.HoldLease && l.Done == layouts.DoneStatus {
		sql += fmt.Sprintf(" UPDATE %s SET %s = now() WHERE %s AND %[2]s IS NULL;", l.Events(), Name(l.Columns.LockedUntil), l.Leased(Name))
	}
	return sql
}

// OldDelivered counts the events that were delivered more than $1 seconds ago.
func (l *Layout) OldDelivered() string {
	return fmt.Sprintf("SELECT count(*) FROM (SELECT FROM %s AS t WHERE %s LIMIT %d) AS old", l.Events(), l.DeliveredBefore(), Limit)
}
