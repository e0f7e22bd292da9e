// Package ops is what the person on call does with an outbox: look at it, find events, and
// retry, replay, hold, release and purge them. The command line, the JSON API and the console
// all stand on it.
//
// It works on a queue table (Table) and on a subscription of a stream (Stream) as far as
// these go; Describe says what a target cannot do, and why. Whatever it asks of the database
// has a bound: with millions of events a number becomes "at least" or an estimate, and a
// search that no index serves looks at a part and says how far it got.
package ops

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
)

// Target is a queue table, or a subscription of a stream, in the eyes of the person on call.
// It is safe for concurrent use.
type Target interface {
	// Describe says what the target is, which fields its events have, and what can be done.
	// It asks the database nothing.
	Describe() Description

	// Overview is how the target is doing now.
	Overview(ctx context.Context) (*Overview, error)
	// List finds events, newest first, a page at a time.
	List(ctx context.Context, filter Filter, page Page) (*Listing, error)
	// Show is all that is known of one event, or ErrNotFound.
	Show(ctx context.Context, id uuid.UUID) (*Details, error)
	// DeadGroups groups the dead events by type and by what their errors have in common.
	DeadGroups(ctx context.Context) (*DeadGroups, error)

	// Retry brings dead events back: the same ids, no attempts counted, due now. It goes on in
	// batches, each of which is committed whole together with its entry in the audit log.
	Retry(ctx context.Context, filter Filter, change Change) (*Result, error)
	// Replay publishes delivered events again, with the same ids and in order. On a stream
	// copies are parked for the relay; from a queue table they are published here, by
	// Replay.Publisher. The events themselves are not changed.
	Replay(ctx context.Context, filter Filter, replay Replay) (*Result, error)
	// Hold keeps parked events, or a key with all that comes, from being published until
	// somebody releases them.
	Hold(ctx context.Context, filter Filter, change Change) (*Result, error)
	// Release ends a hold.
	Release(ctx context.Context, filter Filter, change Change) (*Result, error)
	// Purge deletes delivered events older than the retention, and dead ones older than theirs.
	Purge(ctx context.Context, purge outbox.Purge, change Change) (*Result, error)

	// Audit lists what was done, newest first. Without the table it is empty and says so.
	Audit(ctx context.Context, page Page) (*AuditLog, error)
}

// Kind is what a target is.
type Kind string

// The kinds of targets.
const (
	// KindTable is a queue table.
	KindTable Kind = "table"
	// KindStream is a subscription of a stream.
	KindStream Kind = "stream"
)

// Description is what a target is and can do.
type Description struct {
	// Name is the layout's name and the table's or subscription's, such as "modkit/modkit_outbox_events".
	Name string `json:"name"`
	// Kind is what it is.
	Kind Kind `json:"kind"`
	// Layout is the layout's name.
	Layout string `json:"layout"`
	// Table is the table; Subscription the subscription, of a stream.
	Table        string `json:"table,omitempty"`
	Subscription string `json:"subscription,omitempty"`
	// Fields are the fields of events that it has, and that it can be filtered by.
	Fields []Field `json:"fields"`
	// States are the states that its events can have.
	States []State `json:"states"`
	// Cannot says, for each operation that the target cannot do, why, in a sentence. What is
	// not in it can be done.
	Cannot map[Operation]string `json:"cannot"`
}

// Has reports whether events of the target have a field.
func (d *Description) Has(field Field) bool {
	for _, has := range d.Fields {
		if has == field {
			return true
		}
	}
	return false
}

// Check returns an error that matches ErrUnsupported if the target cannot do an operation.
func (d *Description) Check(operation Operation) error {
	if why, cannot := d.Cannot[operation]; cannot {
		return fmt.Errorf("outbox: %s: %w: %s", operation, ErrUnsupported, why)
	}
	return nil
}

// Operation is something that can be done.
type Operation string

// What can be done.
const (
	OperationRetry   Operation = "retry"
	OperationReplay  Operation = "replay"
	OperationHold    Operation = "hold"
	OperationRelease Operation = "release"
	OperationPurge   Operation = "purge"
)

// Errors of this package. They are matched with errors.Is.
var (
	// ErrNotFound means that there is no such event.
	ErrNotFound = errors.New("there is no such event")
	// ErrUnsupported means that the target has no such operation or field.
	ErrUnsupported = errors.New("the target cannot do this")
	// ErrFilter means that a filter, or a page, makes no sense.
	ErrFilter = errors.New("the filter cannot be used")
)
