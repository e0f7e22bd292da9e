package packfinderz

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Envelope is the JSON that PackFinderz stores as an event's payload: the data, and what a consumer needs to know
// about it. Its field names are a contract.
type Envelope struct {
	// Version is the version of Data's format.
	Version int `json:"version"`
	// EventID is the id of the outbox row, the consumers' idempotency key.
	EventID string `json:"eventId"`
	// OccurredAt is when the change happened.
	OccurredAt time.Time `json:"occurredAt"`
	// Actor is who caused it; nil if nobody did.
	Actor *ActorRef `json:"actor,omitempty"`
	// Data is the event itself.
	Data json.RawMessage `json:"data"`
}

// ActorRef names who caused an event: a user, a service, a job.
type ActorRef struct {
	// Type is the kind of actor, for example "user".
	Type string `json:"type"`
	// ID identifies the actor within its type.
	ID string `json:"id"`
}

// OpenEnvelope parses an envelope and rejects an incomplete one. Names are case-sensitive: EVENTID is not eventId.
func OpenEnvelope(payload []byte) (Envelope, error) {
	var envelope Envelope
	if err := json.Unmarshal(payload, &envelope); err != nil {
		return envelope, err
	}
	if err := exactNames(payload, &envelope); err != nil {
		return envelope, err
	}
	switch {
	case envelope.Version < 1:
		return envelope, errors.New("the envelope has no version")
	case envelope.EventID == "":
		return envelope, errors.New("the envelope has no eventId")
	case envelope.OccurredAt.IsZero():
		return envelope, errors.New("the envelope has no occurredAt")
	case isNull(envelope.Data):
		return envelope, errors.New("the envelope's data is null")
	}
	return envelope, nil
}

// exactNames rejects an envelope with a name that differs from the contract's only in case. encoding/json accepts
// such a name but other languages do not: the field would be missing for them.
func exactNames(payload []byte, envelope *Envelope) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(payload, &fields); err != nil {
		return err
	}
	if err := sameCase(fields, "version", "eventId", "occurredAt", "actor", "data"); err != nil || envelope.Actor == nil {
		return err
	}
	var actor map[string]json.RawMessage
	if err := json.Unmarshal(fields["actor"], &actor); err != nil {
		return err
	}
	return sameCase(actor, "type", "id")
}

func sameCase(fields map[string]json.RawMessage, names ...string) error {
	for field := range fields {
		for _, name := range names {
			if field != name && strings.EqualFold(field, name) {
				return fmt.Errorf("the envelope has %q; the name is %q", field, name)
			}
		}
	}
	return nil
}

// DecodeEnvelope returns a Decode for an [outbox.Route] whose payload is an Envelope: it rejects an incomplete
// envelope, and checks the data with decode.
func DecodeEnvelope(decode func(data []byte) error) func([]byte) error {
	return func(payload []byte) error {
		envelope, err := OpenEnvelope(payload)
		if err != nil || decode == nil {
			return err
		}
		return decode(envelope.Data)
	}
}

func isNull(doc []byte) bool {
	trimmed := bytes.TrimSpace(doc)
	return len(trimmed) == 0 || string(trimmed) == "null"
}
