// Package payloads has the data of every event type, as a struct with its own rules. Invalid data is never published.
package payloads

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/layouts/packfinderz"
	"github.com/packfinderz/outbox/packfinderz/pkg/enums"
)

// Version is the version of all payloads. An incompatible change needs another version, and consumers that know both
// before it is emitted.
const Version = 1

// Payload is the data of one event type.
type Payload interface {
	// EventType is the type that the data belongs to.
	EventType() enums.EventType
	// AggregateID is the aggregate that the data itself names; nil if it names none.
	AggregateID() uuid.UUID
	// Validate says what is wrong with the data, or nil.
	Validate() error
}

// Open reads a stored envelope and its data, for the registry before an event is published, and for consumers. It
// ignores fields that P lacks, so that a producer can be deployed first. It converts nothing, compares names exactly,
// and refuses an ambiguous document.
func Open[P Payload](stored []byte) (envelope packfinderz.Envelope, data P, err error) {
	if envelope, err = packfinderz.OpenEnvelope(stored); err != nil {
		return envelope, data, err
	}
	if err := unambiguous(stored); err != nil {
		return envelope, data, err
	}
	if err := whole(&envelope); err != nil {
		return envelope, data, err
	}
	if envelope.Version != Version {
		return envelope, data, fmt.Errorf("the envelope has version %d; only %d is known", envelope.Version, Version)
	}
	if err := json.Unmarshal(envelope.Data, &data); err != nil {
		return envelope, data, fmt.Errorf("read the data: %w", err)
	}
	if err := exact(envelope.Data, reflect.TypeFor[P]()); err != nil {
		return envelope, data, fmt.Errorf("read the data: %w", err)
	}
	return envelope, data, data.Validate()
}

// whole checks an envelope besides its data. An actor is optional, but needs a type and an id, of any form: a job has no
// UUID.
func whole(envelope *packfinderz.Envelope) error {
	err := moment("occurredAt", envelope.OccurredAt)
	if actor := envelope.Actor; actor != nil {
		err = errors.Join(err, text("actor.type", actor.Type), text("actor.id", actor.ID))
	}
	return err
}
