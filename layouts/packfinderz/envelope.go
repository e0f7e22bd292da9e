package packfinderz

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Envelope is the JSON that PackFinderz stores as an event's payload: the data
// and what a consumer needs to know about it. Its field names are a contract.
type Envelope struct {
	// Version is the version of the shape of Data.
	Version int `json:"version"`
	// EventID is the id of the outbox row, the consumers' idempotency key.
	EventID string `json:"eventId"`
	// OccurredAt is when the change happened.
	OccurredAt time.Time `json:"occurredAt"`
	// Actor is who caused it, if anybody.
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

// OpenEnvelope reads a payload that is an envelope, and refuses one that is not whole. Names are
// compared exactly: EVENTID is not eventId.
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

// exactNames refuses an envelope with a name that only differs in case from one of the contract.
// encoding/json takes such names, and other languages do not: what a Go producer got through would
// be missing for everybody else.
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

// DecodeEnvelope is an [outbox.Route] Decode for payloads that are an Envelope: the envelope must be
// whole, and its data what decode says.
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
