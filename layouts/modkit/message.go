package modkit

import (
	"encoding/json"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
)

// Message is what a module enqueues. It has only the fields of the contract, so none can be set that the table has
// no column for.
type Message struct {
	// Namespace is the module's own; Module.Enqueue sets it.
	Namespace string
	// Topic is what the message is about. Consumers identify a kind of message by namespace and topic.
	Topic string
	// TenantID is for routing and filtering; zero for none.
	TenantID uuid.UUID
	// DedupeKey makes enqueuing idempotent: of the messages of one namespace and topic with the same key, one is
	// written. Empty for none. With a TenantID it must begin with the tenant's id in hex, with or without hyphens,
	// and "/".
	DedupeKey string
	// Payload is JSON, with all that the consumer needs.
	Payload json.RawMessage
}

// Enqueued is the result of enqueuing a message: the ID of its row, or, if AlreadyEnqueued, of the earlier row with
// the same dedupe key.
type Enqueued = outbox.Emitted

// ClaimedMessage is a message that this worker holds, with the fields of the contract. It carries the proof of its
// claim, which Ack needs.
type ClaimedMessage struct {
	ID        uuid.UUID
	Namespace string
	Topic     string
	// TenantID is zero if the message has none.
	TenantID uuid.UUID
	// DedupeKey is empty if the message has none.
	DedupeKey string
	Payload   json.RawMessage
	// Attempts includes the current attempt: it is 1 after the first claim.
	Attempts int

	maxAttempts int
	claim       outbox.Batch // nil if a dispatcher settles the message
}

func claimedMessage(m *outbox.Message, claim outbox.Batch) ClaimedMessage {
	return ClaimedMessage{
		ID: m.ID, Namespace: m.Namespace, Topic: m.Topic, TenantID: m.TenantID, DedupeKey: m.DedupeKey,
		Payload: m.Payload, Attempts: m.Attempt, maxAttempts: m.MaxAttempts, claim: claim,
	}
}
