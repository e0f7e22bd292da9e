package view

import (
	"time"

	"github.com/google/uuid"
)

// State says what happens to an event next.
type State string

// The states. A Description lists those that an outbox has.
const (
	StateDue       State = "due"
	StateScheduled State = "scheduled"
	StateRetrying  State = "retrying"
	StateClaimed   State = "claimed"
	StateWaiting   State = "waiting"
	StateStopped   State = "stopped"
	StateHeld      State = "held"
	StateDead      State = "dead"
	StateDelivered State = "delivered"
)

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

// Filter selects events. An event must match every field that is set; the zero value selects all.
type Filter struct {
	// IDs selects events by id.
	IDs []uuid.UUID `json:"ids,omitempty"`
	// State selects events in one state.
	State State `json:"state,omitempty"`
	// Namespace, Topic and Type select events that have exactly these.
	Namespace string `json:"namespace,omitempty"`
	Topic     string `json:"topic,omitempty"`
	Type      string `json:"type,omitempty"`
	// AggregateType and AggregateID select events of an aggregate; either can be used alone.
	AggregateType string `json:"aggregateType,omitempty"`
	AggregateID   string `json:"aggregateId,omitempty"`
	// Key selects events of one key.
	Key string `json:"key,omitempty"`
	// TenantID selects events of one tenant.
	TenantID uuid.UUID `json:"tenantId,omitzero"`
	// Error selects events by their last error, with ids and numbers replaced by "#" as in
	// DeadGroup.Error.
	Error string `json:"error,omitempty"`
	// Since and Until select events emitted at or after Since and before Until.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
}

// Empty reports whether the filter selects by nothing, or by the state only.
func (f *Filter) Empty() bool {
	return len(f.IDs) == 0 && f.Namespace == "" && f.Topic == "" && f.Type == "" && f.AggregateType == "" &&
		f.AggregateID == "" && f.Key == "" && f.TenantID == uuid.Nil && f.Error == "" && f.Since.IsZero() && f.Until.IsZero()
}
