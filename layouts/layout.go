// Package layouts describes existing outbox tables. A Layout is data about what differs between them: names,
// columns, how a row is held, what "done" looks like. Package pgstore compiles it into statements. The shipped
// layouts are in the folders beside this package; package shipped lists them.
package layouts

import "slices"

// Hold is how a relay keeps other relays from a row while it publishes it.
type Hold string

// The ways to hold a row.
const (
	// HoldLease marks the row with an owner and an end time (locked_by, locked_until).
	HoldLease Hold = "lease"
	// HoldDefer moves the row's due time past the lease. It does so when a batch is first renewed, and until then
	// keeps a transaction with row locks open. Most batches are settled before that, and are written once instead
	// of twice. With CountOnClaim a claim writes the row anyway, and moves the due time at once.
	HoldDefer Hold = "defer"
	// HoldRowLock keeps a transaction with row locks open until the batch is settled.
	HoldRowLock Hold = "rowlock"
)

// Done is how a row is marked as delivered.
type Done string

// The ways to mark a row as delivered.
const (
	// DoneStatus sets a status column to a named value.
	DoneStatus Done = "status"
	// DoneTimestamp sets a timestamp column, which is NULL before.
	DoneTimestamp Done = "timestamp"
)

// Count is when an attempt is counted.
type Count string

// The moments at which an attempt is counted.
const (
	// CountOnClaim counts an attempt when a row is claimed.
	CountOnClaim Count = "claim"
	// CountOnFailure counts an attempt when it has failed.
	CountOnFailure Count = "failure"
)

// Terminal is how a row is marked as dead.
type Terminal string

// The ways to mark a row as dead.
const (
	// TerminalStatus sets the status column to States.Dead.
	TerminalStatus Terminal = "status"
	// TerminalDeadLetter inserts a row into a dead-letter table.
	TerminalDeadLetter Terminal = "deadletter"
)

// Layout describes an outbox table. Set Schema and Table to place a shipped layout elsewhere, or describe your own
// table.
type Layout struct {
	// Name is the layout's name.
	Name string `json:"name"`
	// Schema is the table's schema; empty for the connection's search path.
	Schema string `json:"schema,omitempty"`
	// Table is the table's name.
	Table string `json:"table"`

	// Hold, Done, Count and Terminal say how the table represents claims, delivered events, attempts and dead
	// events.
	Hold     Hold     `json:"hold"`
	Done     Done     `json:"done"`
	Count    Count    `json:"count"`
	Terminal Terminal `json:"terminal"`

	// MaxAttempts is how many attempts an event gets if neither its row nor the relay sets a maximum.
	MaxAttempts int `json:"maxAttempts"`
	// Columns maps the fields of an event to the table's columns.
	Columns Columns `json:"columns"`
	// Dedupe names the fields that are unique together with the dedupe key.
	Dedupe []Field `json:"dedupe,omitempty"`
	// States are the values of the status column, with DoneStatus.
	States *States `json:"states,omitempty"`
	// DeadLetter describes the dead-letter table, with TerminalDeadLetter.
	DeadLetter *DeadLetter `json:"deadLetter,omitempty"`
}

// LayoutName returns the layout's name. It makes a Layout an outbox.Target.
func (l Layout) LayoutName() string { return l.Name }

// States names the values of a status column.
type States struct {
	// Pending is the state of an event that waits for its next attempt.
	Pending string `json:"pending"`
	// Processing is the state of an event that a relay holds; only with HoldLease.
	Processing string `json:"processing,omitempty"`
	// Delivered is the state of a delivered event.
	Delivered string `json:"delivered"`
	// Dead is the state of a dead event; only with TerminalStatus.
	Dead string `json:"dead,omitempty"`
}

// All returns the values of the status column.
func (s *States) All() []string {
	return slices.DeleteFunc([]string{s.Pending, s.Processing, s.Delivered, s.Dead}, func(state string) bool { return state == "" })
}

// DeadLetter describes a dead-letter table. It is in the layout's schema.
type DeadLetter struct {
	// Table is the table's name.
	Table string `json:"table"`
	// Columns maps the fields of a dead letter to the table's columns.
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
	// RetriedAt is when a person retried the event. In a table without this column, a retry deletes the dead
	// letter.
	RetriedAt Column `json:"retriedAt,omitzero"`
}
