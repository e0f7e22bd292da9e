package modkit

import (
	"encoding/json"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
)

// Message is what a module enqueues, with the fields of the contract and no others: there is no
// setting what the table has no column for.
type Message struct {
	// Namespace is the module's own; a Module fills it in.
	Namespace string
	// Topic is what the message is about. Namespace and topic together are what others agree on
	// with the module.
	Topic string
	// TenantID is for routing and filtering; zero for none.
	TenantID uuid.UUID
	// DedupeKey makes enqueuing idempotent: of the messages of one namespace and topic with the
	// same key, one is written. Empty for none. With a TenantID it has to begin with the tenant's
	// id in hex, with or without hyphens, and "/".
	DedupeKey string
	// Payload is JSON, with all that the consumer needs.
	Payload json.RawMessage
}

// Enqueued is what became of a message: the ID of its row, and whether it was AlreadyEnqueued
// under its dedupe key, so that the row is an earlier one and nothing was written.
type Enqueued = outbox.Emitted

// ClaimedMessage is a message that this worker holds, with the fields of the contract. It knows
// its own claim: an Ack proves it.
type ClaimedMessage struct {
	ID        uuid.UUID
	Namespace string
	Topic     string
	// TenantID is zero if the message has none.
	TenantID uuid.UUID
	// DedupeKey is empty if the message has none.
	DedupeKey string
	Payload   json.RawMessage
	// Attempts has counted this one already: it is 1 after the first claim.
	Attempts int

	maxAttempts int
	claim       outbox.Batch // nil where a dispatcher settles the message
}

// claimedMessage is a message of the engine as the contract has it.
func claimedMessage(m *outbox.Message, claim outbox.Batch) ClaimedMessage {
	return ClaimedMessage{
		ID: m.ID, Namespace: m.Namespace, Topic: m.Topic, TenantID: m.TenantID, DedupeKey: m.DedupeKey,
		Payload: m.Payload, Attempts: m.Attempt, maxAttempts: m.MaxAttempts, claim: claim,
	}
}
