package outbox

import (
	"time"

	"github.com/google/uuid"
)

// Event is what a business transaction emits. Its fields cover every target. A target that has no column for a
// field refuses an event that sets it, so nothing is dropped silently.
type Event struct {
	// ID identifies the event in the table, at the broker and at the consumer. Zero asks for a new UUIDv7. Emitting
	// an ID again writes nothing and reports AlreadyEnqueued.
	ID uuid.UUID

	// Namespace separates the events of modules that share one table.
	Namespace string
	// Topic is where the event is published. For a target without a topic column, the relay's registry or
	// DefaultTopic decides.
	Topic string
	// Type says what happened, for example "order_created".
	Type string

	// AggregateType and AggregateID name the entity the event is about.
	AggregateType string
	AggregateID   string

	// TenantID is the tenant that owns the event; zero for none.
	TenantID uuid.UUID
	// DedupeKey makes emitting idempotent: a second event with the same key is not written. The key is unique
	// within the target's scope, such as a topic. If TenantID is set too, the key must begin with the tenant id and
	// a slash.
	DedupeKey string
	// Key orders events: the stream publishes events of one key in the order of their commits.
	Key string

	// Payload is the message body. The relay never changes it. Nil is refused; an empty, non-nil payload is
	// accepted unless the column is JSON.
	Payload []byte
	// Headers travel beside the payload.
	Headers map[string]string
	// ContentType describes Payload, for example "application/json".
	ContentType string

	// NotBefore is the earliest time of the first attempt; zero for no delay.
	NotBefore time.Time
	// MaxAttempts is how many failed attempts make the event dead; zero for the target's default.
	MaxAttempts int
}

// Emitted is the result of emitting one event.
type Emitted struct {
	// ID is the id of the stored event: the event's own or, if AlreadyEnqueued, that of the earlier one.
	ID uuid.UUID
	// AlreadyEnqueued is set when the id or the dedupe key already existed and nothing was written.
	AlreadyEnqueued bool
}
