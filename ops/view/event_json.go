package view

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// eventJSON is an event as JSON, without what is unset.
type eventJSON struct {
	ID            uuid.UUID         `json:"id"`
	State         State             `json:"state"`
	Namespace     string            `json:"namespace,omitempty"`
	Topic         string            `json:"topic,omitempty"`
	Type          string            `json:"type,omitempty"`
	AggregateType string            `json:"aggregateType,omitempty"`
	AggregateID   string            `json:"aggregateId,omitempty"`
	Key           string            `json:"key,omitempty"`
	TenantID      uuid.UUID         `json:"tenantId,omitzero"`
	DedupeKey     string            `json:"dedupeKey,omitempty"`
	Attempts      int               `json:"attempts"`
	MaxAttempts   int               `json:"maxAttempts,omitempty"`
	LastError     string            `json:"lastError,omitempty"`
	Reason        string            `json:"reason,omitempty"`
	CreatedAt     time.Time         `json:"createdAt"`
	NotBefore     time.Time         `json:"notBefore,omitzero"`
	NextAttemptAt time.Time         `json:"nextAttemptAt,omitzero"`
	DeliveredAt   time.Time         `json:"deliveredAt,omitzero"`
	ClaimedBy     string            `json:"claimedBy,omitempty"`
	ClaimedUntil  time.Time         `json:"claimedUntil,omitzero"`
	Replayed      bool              `json:"replayed,omitempty"`
	ContentType   string            `json:"contentType,omitempty"`
	Headers       map[string]string `json:"headers,omitempty"`
	// Payload is a payload that is JSON, PayloadBase64 any other.
	Payload       json.RawMessage `json:"payload,omitempty"`
	PayloadBase64 []byte          `json:"payloadBase64,omitempty"`
	Timeline      []Moment        `json:"timeline,omitempty"`
}

func (e *Event) json() eventJSON {
	doc := eventJSON{
		ID: e.ID, State: e.State, Namespace: e.Namespace, Topic: e.Topic, Type: e.Type,
		AggregateType: e.AggregateType, AggregateID: e.AggregateID, Key: e.Key, TenantID: e.TenantID, DedupeKey: e.DedupeKey,
		Attempts: e.Attempts, MaxAttempts: e.MaxAttempts, LastError: e.LastError, Reason: e.Reason,
		CreatedAt: e.CreatedAt, NotBefore: e.NotBefore, NextAttemptAt: e.NextAttemptAt, DeliveredAt: e.DeliveredAt,
		ClaimedBy: e.ClaimedBy, ClaimedUntil: e.ClaimedUntil, Replayed: e.Replayed,
		ContentType: e.ContentType, Headers: e.Headers,
	}
	if json.Valid(e.Payload) {
		doc.Payload = e.Payload
	} else {
		doc.PayloadBase64 = e.Payload
	}
	return doc
}

// MarshalJSON writes the event with names like those of a layout file. A JSON payload
// is written as it is, any other as base64.
func (e Event) MarshalJSON() ([]byte, error) { return json.Marshal(e.json()) }

// MarshalJSON writes the event and its timeline.
func (d Details) MarshalJSON() ([]byte, error) {
	doc := d.json()
	doc.Timeline = d.Timeline
	return json.Marshal(doc)
}
