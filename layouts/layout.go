// Package layouts describes outbox tables that exist already. What differs between them (names, columns, how a row is held,
// what "done" looks like) is data, a Layout, from which package pgstore compiles its statements. The shipped layouts are
// in the folders beside this package; package shipped lists them.
package layouts

import "slices"

// Hold is how a row is kept from other relays while it is being published.
type Hold string

// The ways to hold a row.
const (
	// HoldLease marks the row with an owner and an end (locked_by, locked_until).
	HoldLease Hold = "lease"
	// HoldDefer pushes the row's due time past the lease. It does so when a batch is first
	// renewed, and keeps a transaction with row locks open until then: most batches are settled
	// long before, and are written once instead of twice. With Count "claim" a claim has to
	// write anyway, and pushes at once.
	HoldDefer Hold = "defer"
	// HoldRowLock keeps a transaction with row locks open until the batch is settled.
	HoldRowLock Hold = "rowlock"
)

// Done is what tells a delivered row from one that waits.
type Done string

// The ways a row is marked as delivered.
const (
	// DoneStatus is a status column with named values.
	DoneStatus Done = "status"
	// DoneTimestamp is a timestamp column that is no longer NULL.
	DoneTimestamp Done = "timestamp"
)

// Count is when an attempt is counted.
type Count string

// The moments at which an attempt is counted.
const (
	// CountOnClaim counts when a row is claimed.
	CountOnClaim Count = "claim"
	// CountOnFailure counts when an attempt has failed.
	CountOnFailure Count = "failure"
)

// Terminal is what an event that will never be delivered leaves behind.
type Terminal string

// What a terminal failure leaves.
const (
	// TerminalStatus is the dead status.
	TerminalStatus Terminal = "status"
	// TerminalDeadLetter is a row in a dead-letter table.
	TerminalDeadLetter Terminal = "deadletter"
)

// Layout describes an outbox table. Change Schema and Table to place them, or describe a table of your own.
type Layout struct {
	// Name is what people call the layout.
	Name string `json:"name"`
	// Schema is the table's schema; empty means the connection's search path.
	Schema string `json:"schema,omitempty"`
	// Table is the table's name.
	Table string `json:"table"`

	// Hold, Done, Count and Terminal are the table's four habits.
	Hold     Hold     `json:"hold"`
	Done     Done     `json:"done"`
	Count    Count    `json:"count"`
	Terminal Terminal `json:"terminal"`

	// MaxAttempts is the number of attempts after which an event is dead, where
	// neither the row nor the relay says otherwise.
	MaxAttempts int `json:"maxAttempts"`
	// Columns maps the fields of an event to the table's columns.
	Columns Columns `json:"columns"`
	// Dedupe names the fields that are unique together with the dedupe key.
	Dedupe []Field `json:"dedupe,omitempty"`
	// States are the values of the status column, with Done "status".
	States *States `json:"states,omitempty"`
	// DeadLetter describes the dead-letter table, with Terminal "deadletter".
	DeadLetter *DeadLetter `json:"deadLetter,omitempty"`
}

// LayoutName is the layout's name; with it, a Layout is an outbox.Target.
func (l Layout) LayoutName() string { return l.Name }

// States names the values of a status column.
type States struct {
	// Pending waits for its (next) attempt.
	Pending string `json:"pending"`
	// Processing is held by a relay; only with Hold "lease".
	Processing string `json:"processing,omitempty"`
	// Delivered was published.
	Delivered string `json:"delivered"`
	// Dead will not be tried again; only with Terminal "status".
	Dead string `json:"dead,omitempty"`
}

// All are the values that the status column can have.
func (s *States) All() []string {
	return slices.DeleteFunc([]string{s.Pending, s.Processing, s.Delivered, s.Dead}, func(state string) bool { return state == "" })
}

// DeadLetter describes a dead-letter table. It stands in the layout's schema.
type DeadLetter struct {
	// Table is the table's name.
	Table string `json:"table"`
	// Columns maps what is kept of a dead event to the table's columns.
	Columns DeadLetterColumns `json:"columns"`
}

// DeadLetterColumns are the columns of a dead-letter table. The event's own fields
// (type, aggregate, payload) have the types they have in the outbox table.
type DeadLetterColumns struct {
	ID            Column `json:"id"`
	EventID       Column `json:"eventId"`
	Type          Column `json:"type,omitzero"`
	AggregateType Column `json:"aggregateType,omitzero"`
	AggregateID   Column `json:"aggregateId,omitzero"`
	Payload       Column `json:"payload"`
	Reason        Column `json:"reason"`
	FailedAt      Column `json:"failedAt"`
	CreatedAt     Column `json:"createdAt,omitzero"`
	Attempts      Column `json:"attempts,omitzero"`
	LastError     Column `json:"lastError,omitzero"`
	// RetriedAt is when a person had the event tried again. A table without it keeps no letter of an event that was
	// retried: the retry deletes it.
	RetriedAt Column `json:"retriedAt,omitzero"`
}
