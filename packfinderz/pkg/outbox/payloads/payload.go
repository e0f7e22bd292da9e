// Package payloads has the data of every event type: a typed struct with its own rules. What is not
// valid here is never published.
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

// Version is the version of all payloads. A change that a consumer could trip over needs another
// one, and consumers that know both before it is emitted.
const Version = 1

// Payload is the data of one event type.
type Payload interface {
	// EventType is the type that the data belongs to.
	EventType() enums.EventType
	// AggregateID is the aggregate that the data itself names; nil where it names none.
	AggregateID() uuid.UUID
	// Validate says what is wrong with the data, or nil.
	Validate() error
}

// Open reads a stored envelope and its data: for the registry before an event is published, and for
// consumers. Fields that P does not have are passed over, so that a producer can be deployed first;
// nothing is converted, guessed or filled in, and names are compared exactly. A document that readers
// could read in two ways is refused.
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

// whole checks what an envelope says besides its data. An actor can be left out; one that is there says who it is. What its id
// looks like is up to its type: a job has no UUID.
func whole(envelope *packfinderz.Envelope) error {
	err := moment("occurredAt", envelope.OccurredAt)
	if actor := envelope.Actor; actor != nil {
		err = errors.Join(err, text("actor.type", actor.Type), text("actor.id", actor.ID))
	}
	return err
}
