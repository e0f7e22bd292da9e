// Package pgstore is the store of outbox tables that exist already. A layouts.Layout says what differs between them; every
// statement is compiled from it once.
package pgstore

import (
	"github.com/packfinderz/outbox/internal/sqlname"
	"github.com/packfinderz/outbox/layouts"
)

// layout is a layout, with what its habits mean for the statements.
type layout struct{ layouts.Layout }

// qualified puts a checked name into the layout's schema.
func (l *layout) qualified(name string) string { return sqlname.Qualified(l.Schema, name) }

// locks is whether a claim only locks its rows, in a transaction that stays open.
func (l *layout) locks() bool {
	return l.Hold == layouts.HoldRowLock || l.Hold == layouts.HoldDefer && l.Count == layouts.CountOnFailure
}
