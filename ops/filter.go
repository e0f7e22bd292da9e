package ops

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// State is what becomes of an event next.
type State string

// The states. Which of them a target has is in its Description.
const (
	// StateDue could be claimed now.
	StateDue State = "due"
	// StateScheduled waits for its first attempt at a set time.
	StateScheduled State = "scheduled"
	// StateRetrying has failed and waits for its next attempt.
	StateRetrying State = "retrying"
	// StateClaimed is with a relay.
	StateClaimed State = "claimed"
	// StateWaiting waits behind an earlier event of its key.
	StateWaiting State = "waiting"
	// StateStopped waits for its topic, which takes nothing for the moment.
	StateStopped State = "stopped"
	// StateHeld is held by a person.
	StateHeld State = "held"
	// StateDead will not be tried again.
	StateDead State = "dead"
	// StateDelivered was published.
	StateDelivered State = "delivered"
)

// States are all states, in the order in which people read them.
func States() []State {
	return []State{
		StateDue, StateScheduled, StateRetrying, StateClaimed, StateWaiting, StateStopped, StateHeld, StateDead, StateDelivered,
	}
}

// Field is a field that a filter can have.
type Field string

// The fields of a filter.
const (
	FieldID        Field = "id"
	FieldNamespace Field = "namespace"
	FieldTopic     Field = "topic"
	FieldType      Field = "type"
	FieldAggregate Field = "aggregate"
	FieldKey       Field = "key"
	FieldTenant    Field = "tenant"
	FieldError     Field = "error"
)

// Filter says which events. What is set narrows; the zero value is every event.
type Filter struct {
	// IDs are the only events.
	IDs []uuid.UUID `json:"ids,omitempty"`
	// State is the only state.
	State State `json:"state,omitempty"`
	// Namespace, Topic and Type are the only ones.
	Namespace string `json:"namespace,omitempty"`
	Topic     string `json:"topic,omitempty"`
	Type      string `json:"type,omitempty"`
	// AggregateType and AggregateID name what it happened to; either may stand alone.
	AggregateType string `json:"aggregateType,omitempty"`
	AggregateID   string `json:"aggregateId,omitempty"`
	// Key is the only key.
	Key string `json:"key,omitempty"`
	// TenantID is the only tenant.
	TenantID uuid.UUID `json:"tenantId,omitzero"`
	// Error is what the last error comes down to once numbers and ids are taken out of it, as
	// DeadGroup.Error has it.
	Error string `json:"error,omitempty"`
	// Since and Until bound when the events were emitted: at or after, and before.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
}

// Empty reports whether the filter narrows nothing, or nothing but the state.
func (f *Filter) Empty() bool {
	return len(f.IDs) == 0 && f.Namespace == "" && f.Topic == "" && f.Type == "" && f.AggregateType == "" &&
		f.AggregateID == "" && f.Key == "" && f.TenantID == uuid.Nil && f.Error == "" && f.Since.IsZero() && f.Until.IsZero()
}

// MaxIDs is how many ids a filter may name.
const MaxIDs = 10_000

// check refuses a filter that the target cannot answer.
func (f *Filter) check(d *Description) error {
	for _, c := range []struct {
		field Field
		set   bool
	}{
		{FieldNamespace, f.Namespace != ""},
		{FieldTopic, f.Topic != ""},
		{FieldType, f.Type != ""},
		{FieldAggregate, f.AggregateType != "" || f.AggregateID != ""},
		{FieldKey, f.Key != ""},
		{FieldTenant, f.TenantID != uuid.Nil},
		{FieldError, f.Error != ""},
	} {
		if c.set && !d.Has(c.field) {
			return fmt.Errorf("outbox: %s has no %s to look for: %w", d.Name, c.field, ErrUnsupported)
		}
	}
	if f.State != "" {
		known := false
		for _, state := range d.States {
			known = known || state == f.State
		}
		if !known {
			return fmt.Errorf("outbox: events of %s are never %q; choose one of %v: %w", d.Name, f.State, d.States, ErrUnsupported)
		}
	}
	if len(f.IDs) > MaxIDs {
		return fmt.Errorf("outbox: %d ids at once; name %d at most: %w", len(f.IDs), MaxIDs, ErrFilter)
	}
	if !f.Since.IsZero() && !f.Until.IsZero() && !f.Since.Before(f.Until) {
		return fmt.Errorf("outbox: %w: its end is not after its beginning", ErrFilter)
	}
	return nil
}

// matches reports whether an event is one of the filter's, apart from its ids.
func (f *Filter) matches(e *Event) bool {
	for _, c := range []struct{ want, is string }{
		{string(f.State), string(e.State)},
		{f.Namespace, e.Namespace},
		{f.Topic, e.Topic},
		{f.Type, e.Type},
		{f.AggregateType, e.AggregateType},
		{f.AggregateID, e.AggregateID},
		{f.Key, e.Key},
		{f.Error, normal(e.LastError)},
	} {
		if c.want != "" && c.want != c.is {
			return false
		}
	}
	return (f.TenantID == uuid.Nil || f.TenantID == e.TenantID) &&
		(f.Since.IsZero() || !e.CreatedAt.Before(f.Since)) && (f.Until.IsZero() || e.CreatedAt.Before(f.Until))
}

// Page is a part of a list.
type Page struct {
	// Size is how many entries it has at most. Default 50; at most 1,000.
	Size int
	// Cursor is Listing.Next of the page before; empty for the first.
	Cursor string
}

const (
	defaultPage = 50
	maxPage     = 1000
)

func (p Page) size() (int, error) {
	switch {
	case p.Size == 0:
		return defaultPage, nil
	case p.Size < 0 || p.Size > maxPage:
		return 0, fmt.Errorf("outbox: a page of %d; choose 1 to %d: %w", p.Size, maxPage, ErrFilter)
	}
	return p.Size, nil
}

// errCursor is the answer to a cursor that no page ended with.
var errCursor = errors.New("the page's cursor is not one of this list")
