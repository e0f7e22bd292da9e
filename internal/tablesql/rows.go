package tablesql

import (
	"fmt"
	"strings"

	"github.com/packfinderz/outbox/internal/sqlname"
	"github.com/packfinderz/outbox/layouts"
)

// Pending is true for rows that are neither delivered nor leased, nor dead by their status: where there is a dead-letter
// table, some may be dead. Under row locks a relay may hold some. Name is how columns are written, T or Name.
func (l *Layout) Pending(name func(layouts.Column) string) string {
	if l.Done == layouts.DoneStatus {
		return name(l.Columns.Status) + " = " + sqlname.Literal(l.States.Pending)
	}
	where := name(l.Columns.DeliveredAt) + " IS NULL"
	if l.Hold == layouts.HoldLease {
		where += " AND " + name(l.Columns.LockedUntil) + " IS NULL"
	}
	return where
}

// Due is true for pending rows whose time has come.
func (l *Layout) Due() string {
	if next := l.Columns.NextAttemptAt; !next.IsZero() {
		return T(next) + " <= now()"
	}
	return "true"
}

// Leased is true for rows under a lease, run out or not; of a layout without leases for none.
func (l *Layout) Leased(name func(layouts.Column) string) string {
	switch {
	case l.Hold != layouts.HoldLease:
		return "false"
	case l.Done == layouts.DoneStatus:
		return name(l.Columns.Status) + " = " + sqlname.Literal(l.States.Processing)
	}
	return name(l.Columns.DeliveredAt) + " IS NULL AND " + name(l.Columns.LockedUntil) + " IS NOT NULL"
}

// Delivered is true for rows that were published.
func (l *Layout) Delivered() string {
	if l.Done == layouts.DoneStatus {
		return T(l.Columns.Status) + " = " + sqlname.Literal(l.States.Delivered)
	}
	return T(l.Columns.DeliveredAt) + " IS NOT NULL"
}

// DeliveredBefore is true for rows that were delivered more than $1 seconds ago. Only delivered rows match, whatever their
// age.
func (l *Layout) DeliveredBefore() string {
	const before = " < now() - make_interval(secs => $1::float8)"
	columns := &l.Columns
	var where []string
	if l.Done == layouts.DoneStatus {
		where = append(where, l.Delivered())
		if columns.NextAttemptAt.NotNull {
			// It was due before it was delivered, and this is the column of the index.
			where = append(where, T(columns.NextAttemptAt)+before)
		}
	}
	at := columns.CreatedAt
	switch {
	case !columns.DeliveredAt.IsZero():
		at = columns.DeliveredAt
	case !columns.UpdatedAt.IsZero():
		at = columns.UpdatedAt
	}
	return strings.Join(append(where, T(at)+before), " AND ")
}

// Dead is true for rows that will not be tried again.
func (l *Layout) Dead() string {
	if l.Terminal == layouts.TerminalStatus {
		return T(l.Columns.Status) + " = " + sqlname.Literal(l.States.Dead)
	}
	return "NOT (" + l.Delivered() + ") AND " + l.hasLetter()
}

// NotDead is true for pending rows without an open dead letter: raising the maximum of attempts must not revive a dead one.
func (l *Layout) NotDead() string {
	if l.DeadLetter == nil {
		return "true"
	}
	return "NOT " + l.hasLetter()
}

// hasLetter is true for rows with an open dead letter.
func (l *Layout) hasLetter() string {
	return fmt.Sprintf("EXISTS (SELECT FROM %s d WHERE d.%s = %s AND %s)",
		l.Letters(), Name(l.DeadLetter.Columns.EventID), T(l.Columns.ID), l.OpenLetter())
}

// OpenLetter is true for a letter that keeps its event dead: one that nobody has retried. If the table cannot say so, a
// retry deletes the letter, and all that are there are open.
func (l *Layout) OpenLetter() string {
	retried := l.DeadLetter.Columns.RetriedAt
	if retried.IsZero() {
		return "true"
	}
	return "d." + Name(retried) + " IS NULL"
}

// Unknown is true for rows whose status is none that the layout names, NULL included.
func (l *Layout) Unknown(name func(layouts.Column) string) string {
	states := l.States.All()
	known := make([]string, len(states))
	for i, state := range states {
		known[i] = sqlname.Literal(state)
	}
	return fmt.Sprintf("(%s IN (%s)) IS NOT TRUE", name(l.Columns.Status), strings.Join(known, ", "))
}

// CountUnknown counts the rows that are Unknown and meet another condition, up to limit; it is empty if there is no status.
// Shipped tables have an index with the same condition, which is nearly always empty.
func (l *Layout) CountUnknown(and string, limit int) string {
	if l.Done != layouts.DoneStatus {
		return ""
	}
	return fmt.Sprintf("SELECT count(*) FROM (SELECT FROM %s AS t WHERE %s AND %s LIMIT %d) AS unknown", l.Events(), l.Unknown(T), and, limit)
}

// IndexUnknown makes an index of the rows that are Unknown, without blocking writers.
func (l *Layout) IndexUnknown() string {
	return fmt.Sprintf("CREATE INDEX CONCURRENTLY ON %s (%s) WHERE %s;", l.Events(), Name(l.Columns.ID), l.Unknown(Name))
}

// Timeless selects the rows that a time decides about and that have none, if they meet another condition, up to limit of
// each kind. It is empty if no time decides.
func (l *Layout) Timeless(and string, limit int) string {
	var kinds []string
	if next := l.Columns.NextAttemptAt; !next.IsZero() {
		kinds = append(kinds, fmt.Sprintf("(SELECT FROM %s AS t WHERE %s AND %s IS NULL AND %s LIMIT %d)", l.Events(), l.Pending(T), T(next), and, limit))
	}
	if l.Hold == layouts.HoldLease && l.Done == layouts.DoneStatus {
		// Not IS NULL: an index on the lease would be read through all rows that nobody holds.
		kinds = append(kinds, fmt.Sprintf("(SELECT FROM %s AS t WHERE %s AND coalesce(%s, '-infinity') = '-infinity' AND %s LIMIT %d)",
			l.Events(), l.Leased(T), T(l.Columns.LockedUntil), and, limit))
	}
	return strings.Join(kinds, "\n  UNION ALL ")
}
