package outbox

import (
	"time"

	"github.com/google/uuid"
)

// Event is what a business transaction emits. It holds the fields of every
// target; a target that has no place for a field that is set refuses the event,
// so nothing is dropped silently.
type Event struct {
	// ID identifies the event for life: in the table, at the broker and at the
	// consumer. The zero value asks for a new UUIDv7. Emitting an id a second time
	// reports "already enqueued" and writes nothing.
	ID uuid.UUID

	// Namespace separates the events of modules that share one table.
	Namespace string
	// Topic is where the event is published. Targets without a topic take it from
	// the relay's registry or default.
	Topic string
	// Type says what happened, for example "order_created".
	Type string

	// AggregateType and AggregateID name the thing it happened to.
	AggregateType string
	AggregateID   string

	// TenantID is the tenant the event belongs to; zero for none.
	TenantID uuid.UUID
	// DedupeKey makes emitting idempotent: a second event with the same key (within
	// the target's scope, such as one topic) is not written. When TenantID is set
	// too, the key must begin with the tenant id and a slash.
	DedupeKey string
	// Key orders events: on the stream, events of one key are published in the order
	// in which they were committed.
	Key string

	// Payload is the message body. It is never changed by the relay. Nil is refused;
	// an empty but non-nil payload is allowed where the column is not JSON.
	Payload []byte
	// Headers travel beside the payload.
	Headers map[string]string
	// ContentType describes Payload, for example "application/json".
	ContentType string

	// NotBefore delays the first attempt to a moment; zero for none.
	NotBefore time.Time
	// MaxAttempts is the number of attempts after which the event is dead; zero for
	// the target's default.
	MaxAttempts int
}

// Emitted says what became of one event.
type Emitted struct {
	// ID is the id of the row that holds the event: the event's own, or that of the
	// row that was there first.
	ID uuid.UUID
	// AlreadyEnqueued is true when the id or the dedupe key was there before and no
	// row was written.
	AlreadyEnqueued bool
}
