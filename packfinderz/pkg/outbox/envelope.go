package outbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/layouts/packfinderz"
	"github.com/packfinderz/outbox/packfinderz/pkg/db/model"
	"github.com/packfinderz/outbox/packfinderz/pkg/enums"
)

// OutboxPayloadEnvelope is the content of payload_json, and of the Pub/Sub message, byte for byte: the event's data with
// its version, id, time and actor.
type OutboxPayloadEnvelope = packfinderz.Envelope //nolint:revive // the name is the contract's

// ActorRef names who caused an event.
type ActorRef = packfinderz.ActorRef

// Origin is a dead event: the row's fields, and its envelope verbatim.
type Origin struct {
	EventID       uuid.UUID           `json:"eventId"`
	EventType     enums.EventType     `json:"eventType"`
	AggregateType enums.AggregateType `json:"aggregateType"`
	AggregateID   string              `json:"aggregateId"`
	Payload       json.RawMessage     `json:"payload"`
}

// DLQEnvelope is an event that the publisher gave up, and why, for people and tools to pass on.
type DLQEnvelope struct {
	Origin
	Failure Failure `json:"failure"`
}

// Failure is why the publisher gave an event up.
type Failure struct {
	Reason    enums.ErrorReason `json:"reason"`
	Error     string            `json:"error,omitempty"`
	Attempts  int               `json:"attempts"`
	CreatedAt time.Time         `json:"createdAt"`
	FailedAt  time.Time         `json:"failedAt"`
	RetriedAt *time.Time        `json:"retriedAt,omitempty"`
}

// NewDLQEnvelope returns the envelope of a DLQ row.
func NewDLQEnvelope(row model.OutboxDLQ) DLQEnvelope {
	failure := Failure{
		Reason: row.ErrorReason, Attempts: row.AttemptCount, CreatedAt: row.CreatedAt, FailedAt: row.FailedAt, RetriedAt: row.RetriedAt,
	}
	if row.LastError != nil {
		failure.Error = *row.LastError
	}
	return DLQEnvelope{Failure: failure, Origin: Origin{
		EventID: row.EventID, EventType: row.EventType, AggregateType: row.AggregateType, AggregateID: row.AggregateID.String(),
		Payload: row.PayloadJSON,
	}}
}

// ConsumerDeadLetter is a message of a consumer's dead-letter topic: an event that the consumer gave up. The message's
// body is the event's envelope; its attributes are the rest.
type ConsumerDeadLetter struct {
	Origin
	Failure ConsumerFailure `json:"failure"`
}

// ConsumerFailure is why a consumer gave an event up.
type ConsumerFailure struct {
	// Reason is max_deliveries, or the reason of a terminal error.
	Reason string `json:"reason"`
	Error  string `json:"error,omitempty"`
	// Topic is where the event came from; Deliveries is how often it was delivered.
	Topic      string `json:"topic"`
	Deliveries int    `json:"deliveries"`
}

// ReadConsumerDeadLetter reads a message of a dead-letter topic.
func ReadConsumerDeadLetter(message *outbox.Message) (ConsumerDeadLetter, error) {
	headers := message.Headers
	if headers[consume.DeadReason] == "" {
		return ConsumerDeadLetter{}, errors.New("outbox: the message is no dead letter: it has no attribute " + consume.DeadReason)
	}
	deliveries, err := strconv.Atoi(headers[consume.DeadDeliveries])
	if err != nil {
		return ConsumerDeadLetter{}, fmt.Errorf("outbox: read the attribute %s: %w", consume.DeadDeliveries, err)
	}
	return ConsumerDeadLetter{
		Origin: Origin{
			EventID: message.ID, EventType: enums.EventType(message.Type), AggregateType: enums.AggregateType(message.AggregateType),
			AggregateID: message.AggregateID, Payload: message.Payload,
		},
		Failure: ConsumerFailure{
			Reason: headers[consume.DeadReason], Error: headers[consume.DeadError], Topic: headers[consume.DeadTopic], Deliveries: deliveries,
		},
	}, nil
}
