// Package view has the types in which people see an outbox. Package ops exports them under the same names; they are
// here because both of its halves, the table's and the stream's, need them.
package view

import (
	"errors"
	"fmt"
	"slices"
)

// Description says what an outbox is and what it can do.
type Description struct {
	// Name is the layout's name and the table's or subscription's, such as "modkit/modkit_outbox_events".
	Name string `json:"name"`
	// Kind is "table" or "stream".
	Kind string `json:"kind"`
	// Layout is the layout's name.
	Layout string `json:"layout"`
	// Table is the table; Subscription is the subscription of a stream.
	Table        string `json:"table,omitempty"`
	Subscription string `json:"subscription,omitempty"`
	// Fields are the fields that its events have; a filter can use these.
	Fields []Field `json:"fields"`
	// States are the states that its events can have.
	States []State `json:"states"`
	// Cannot gives, for each unsupported operation, the reason as a sentence.
	Cannot map[Operation]string `json:"cannot"`
	// RelayReplays is set if the outbox's relay publishes replayed events. Otherwise Replay publishes
	// them itself and needs a Publisher.
	RelayReplays bool `json:"-"`
}

// Has reports whether events have a field.
func (d *Description) Has(field Field) bool { return slices.Contains(d.Fields, field) }

// Check returns an error that matches ErrUnsupported if the outbox does not support an operation.
func (d *Description) Check(operation Operation) error {
	if why, cannot := d.Cannot[operation]; cannot {
		return fmt.Errorf("outbox: %s: %w: %s", operation, ErrUnsupported, why)
	}
	return nil
}

// Operation is something that a person does to events.
type Operation string

// The operations.
const (
	OperationRetry   Operation = "retry"
	OperationReplay  Operation = "replay"
	OperationHold    Operation = "hold"
	OperationRelease Operation = "release"
	OperationPurge   Operation = "purge"
)

// The errors of package ops, to be matched with errors.Is.
var (
	ErrNotFound    = errors.New("there is no such event")
	ErrUnsupported = errors.New("the outbox does not support this")
	ErrFilter      = errors.New("the filter cannot be used")
	// ErrCursor is an ErrFilter: the cursor of a page belongs to another list.
	ErrCursor = fmt.Errorf("%w: the page's cursor does not belong to this list", ErrFilter)
)
