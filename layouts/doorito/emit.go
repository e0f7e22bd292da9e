package doorito

import (
	"context"

	"github.com/packfinderz/outbox"
)

// Emitter is an emitter for this layout: an *outboxpgx.Emitter, *outboxsql.Emitter or *outboxgorm.Emitter. Tx is
// its transaction type.
type Emitter[Tx any] interface {
	Emit(ctx context.Context, tx Tx, event outbox.Event) (outbox.Emitted, error)
}

// Option is a named argument of emit_event.
type Option func(*outbox.Event)

// IdempotencyKey makes emitting idempotent: of events with the same type and key only the first is written. Without
// a key, or with an empty one, the event's id is its key.
func IdempotencyKey(key string) Option {
	return func(event *outbox.Event) { event.DedupeKey = key }
}

// EmitEvent is the contract's emit_event: it writes one event in the caller's transaction and never commits. The
// names are free: an aggregate such as "UploadFile", its id as text, a type such as "file.stored". The payload is
// anything that Encode accepts. A repeated idempotency key is no error: nothing is written, and
// Emitted.AlreadyEnqueued is true.
func EmitEvent[Tx any](
	ctx context.Context, emitter Emitter[Tx], tx Tx,
	aggregateType, aggregateID, eventType string, payload any, options ...Option,
) (outbox.Emitted, error) {
	event, err := NewEvent(aggregateType, aggregateID, eventType, payload, options...)
	if err != nil {
		return outbox.Emitted{}, err
	}
	return emitter.Emit(ctx, tx, event)
}

// NewEvent returns the event that EmitEvent writes, for EmitMany or for fields that emit_event lacks. A payload
// that cannot be encoded is an *outbox.EventError.
func NewEvent(aggregateType, aggregateID, eventType string, payload any, options ...Option) (outbox.Event, error) {
	document, err := Encode(payload)
	if err != nil {
		return outbox.Event{}, &outbox.EventError{Field: "payload", Problem: err.Error()}
	}
	event := outbox.Event{AggregateType: aggregateType, AggregateID: aggregateID, Type: eventType, Payload: document}
	for _, option := range options {
		option(&event)
	}
	return event, nil
}
