// Package wire defines how an event looks at a broker: the attributes beside the payload, plain or as a CloudEvent,
// and the options common to all destination URLs. All destinations use it, so that they agree.
package wire

import (
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
)

// The names of an event's attributes at a broker. An attribute without a value is left out.
const (
	EventID       = "event_id"
	EventType     = "event_type"
	AggregateType = "aggregate_type"
	AggregateID   = "aggregate_id"
	CreatedAt     = "created_at"
	Namespace     = "namespace"
	TenantID      = "tenant_id"
	DedupeKey     = "dedupe_key"
	ContentType   = "content_type"
)

// EventKey is the attribute with the key of a plain event at brokers that have no place of their own for it. Attributes
// leaves it out.
const EventKey = "event_key"

// DeadReason is an attribute of a consumer's dead letter only: why the event is dead. Package consume writes it and
// defines the others.
const DeadReason = "dead_letter_reason"

// Attribute is one name and value beside the payload.
type Attribute struct{ Name, Value string }

// Attributes returns the attributes of a message: its own fields, and then its headers by name. A header with the
// name of a field is left out.
func Attributes(message *outbox.Message) []Attribute {
	list := make([]Attribute, 0, 9+len(message.Headers))
	list = append(list, Attribute{EventID, message.ID.String()})
	list = add(list, EventType, message.Type)
	list = add(list, AggregateType, message.AggregateType)
	list = add(list, AggregateID, message.AggregateID)
	list = append(list, Attribute{CreatedAt, message.CreatedAt.UTC().Format(time.RFC3339Nano)})
	list = add(list, Namespace, message.Namespace)
	list = add(list, TenantID, tenant(message))
	list = add(list, DedupeKey, message.DedupeKey)
	list = add(list, ContentType, message.ContentType)
	return addHeaders(list, message)
}

func add(list []Attribute, name, value string) []Attribute {
	if value == "" {
		return list
	}
	return append(list, Attribute{name, value})
}

func tenant(message *outbox.Message) string {
	if message.TenantID == uuid.Nil {
		return ""
	}
	return message.TenantID.String()
}

func addHeaders(list []Attribute, message *outbox.Message) []Attribute {
	fields := list
	for _, name := range slices.Sorted(maps.Keys(message.Headers)) {
		if !slices.ContainsFunc(fields, func(a Attribute) bool { return a.Name == name }) {
			list = append(list, Attribute{name, message.Headers[name]})
		}
	}
	return list
}
