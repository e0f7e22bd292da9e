package ops

import "github.com/packfinderz/outbox/ops/view"

// What people see of an outbox.
type (
	// Description says what an outbox is and what it can do.
	Description = view.Description
	// Operation is something that a person does to events.
	Operation = view.Operation
	// State says what happens to an event next.
	State = view.State
	// Field is a field that a filter can have.
	Field = view.Field
	// Filter selects events. An event must match every field that is set; the zero value selects all.
	Filter = view.Filter
	// Event is an event and its state. Only Show sets Payload and Headers.
	Event = view.Event
	// Details is an event with its history.
	Details = view.Details
	// Moment is something that happened to an event.
	Moment = view.Moment
	// Listing is a page of events, newest first.
	Listing = view.Listing
	// DeadGroups are the dead events in groups, largest first.
	DeadGroups = view.DeadGroups
	// DeadGroup is a group of dead events with the same type and error.
	DeadGroup = view.DeadGroup
	// Overview is the present state of an outbox.
	Overview = view.Overview
	// Count is a number of events that may be inexact.
	Count = view.Count
	// Stats are an outbox's numbers, counted further than those of an Overview.
	Stats = view.Stats
	// Totals counts the events of a queue table.
	Totals = view.Totals
	// Share is a part of the backlog.
	Share = view.Share
	// StoppedTopic is a topic that accepts no events at present.
	StoppedTopic = view.StoppedTopic
	// Relay is a relay that is alive.
	Relay = view.Relay
)

// The operations.
const (
	OperationRetry   = view.OperationRetry
	OperationReplay  = view.OperationReplay
	OperationHold    = view.OperationHold
	OperationRelease = view.OperationRelease
	OperationPurge   = view.OperationPurge
)

// The states. A Description lists those that an outbox has.
const (
	// StateDue means that a relay can claim the event now.
	StateDue = view.StateDue
	// StateScheduled means that its first attempt is set for later.
	StateScheduled = view.StateScheduled
	// StateRetrying means that it failed and waits for its next attempt.
	StateRetrying = view.StateRetrying
	// StateClaimed means that a relay has claimed it.
	StateClaimed = view.StateClaimed
	// StateWaiting means that it waits for an earlier event of its key.
	StateWaiting = view.StateWaiting
	// StateStopped means that its topic accepts no events at present.
	StateStopped = view.StateStopped
	// StateHeld means that a person holds it.
	StateHeld = view.StateHeld
	// StateDead means that it is dead: it is not tried again unless a person retries it.
	StateDead = view.StateDead
	// StateDelivered means that it was delivered.
	StateDelivered = view.StateDelivered
)

// States returns all states in the order in which people read them.
func States() []State {
	return []State{
		StateDue, StateScheduled, StateRetrying, StateClaimed, StateWaiting, StateStopped, StateHeld, StateDead, StateDelivered,
	}
}

// The fields of a filter.
const (
	FieldID        = view.FieldID
	FieldNamespace = view.FieldNamespace
	FieldTopic     = view.FieldTopic
	FieldType      = view.FieldType
	FieldAggregate = view.FieldAggregate
	FieldKey       = view.FieldKey
	FieldTenant    = view.FieldTenant
	FieldError     = view.FieldError
)

// Errors of this package, to be matched with errors.Is.
var (
	// ErrNotFound means that there is no such event.
	ErrNotFound = view.ErrNotFound
	// ErrUnsupported means that the outbox lacks an operation, a state or a field.
	ErrUnsupported = view.ErrUnsupported
	// ErrFilter means that a filter, a page or an option makes no sense.
	ErrFilter = view.ErrFilter
)
