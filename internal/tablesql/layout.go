// Package tablesql turns what a layout says of its rows into SQL, for the packages that read and write them. Every
// condition calls the table t and the dead-letter table d, and quotes all names.
package tablesql

import (
	"github.com/packfinderz/outbox/internal/sqlname"
	"github.com/packfinderz/outbox/layouts"
)

// Layout is a layout that has been validated, with what its habits mean for statements.
type Layout struct{ layouts.Layout }

// Qualified puts a name into the layout's schema.
func (l *Layout) Qualified(name string) string { return sqlname.Qualified(l.Schema, name) }

// Events is the table.
func (l *Layout) Events() string { return l.Qualified(l.Table) }

// Letters is the dead-letter table; empty if there is none.
func (l *Layout) Letters() string {
	if l.DeadLetter == nil {
		return ""
	}
	return l.Qualified(l.DeadLetter.Table)
}

// Locks reports whether a claim only locks its rows, in a transaction that stays open.
func (l *Layout) Locks() bool {
	return l.Hold == layouts.HoldRowLock || l.Hold == layouts.HoldDefer && l.Count == layouts.CountOnFailure
}

// ClaimEnds reports whether the claim itself moves rows with used-up attempts to dead. Otherwise they are held like the
// others, and moved once they are claimed.
func (l *Layout) ClaimEnds() bool {
	return l.Hold == layouts.HoldLease && l.Terminal == layouts.TerminalStatus
}

// Order is the column by which rows are claimed: the due time, or the age.
func (l *Layout) Order() layouts.Column {
	if !l.Columns.NextAttemptAt.IsZero() {
		return l.Columns.NextAttemptAt
	}
	return l.Columns.CreatedAt
}

// T is a column of the table t.
func T(column layouts.Column) string { return "t." + Name(column) }

// Name is a column without its table, as an index or an UPDATE of one table takes it.
func Name(column layouts.Column) string { return sqlname.Quote(column.Name) }

// maxErrorLength is how long a relay's errors are at most, in characters.
const maxErrorLength = 1000

// ErrorLength is how many characters of an error the column takes, and whether a relay's errors have to be cut for it.
func ErrorLength(column layouts.Column) (length int, cut bool) {
	if column.MaxLength > 0 && column.MaxLength < maxErrorLength {
		return column.MaxLength, true
	}
	return maxErrorLength, false
}
