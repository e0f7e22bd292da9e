// Package outbox emits the events of the backend's domain services, and shows people the dead ones.
// cmd/outbox-publisher publishes them.
package outbox

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/outboxgorm"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/payloads"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/registry"
)

// DomainEvent is something that happened. Its data decides its event type and aggregate type.
type DomainEvent struct {
	// ID identifies the event; zero for a new id. Emitting an id again writes nothing.
	ID uuid.UUID
	// AggregateID is the thing it happened to: the licence, the order. If the data names one, too, they must be equal.
	AggregateID uuid.UUID
	// OccurredAt is when it happened; zero for now.
	OccurredAt time.Time
	// Actor is who caused it; nil for nobody.
	Actor *ActorRef
	// Data is the event itself.
	Data payloads.Payload
}

// Config configures a Service. The zero value is ready to use.
type Config struct {
	// Layout is a table that differs from the contract's, as layoutfile.Load reads it. The publisher needs the same
	// one. Default: the contract's.
	Layout *layouts.Layout
	// Logger logs each event that was written, at the level debug, because it may still be rolled back. Default: none.
	Logger *slog.Logger
}

// Service emits events. It is safe for concurrent use.
type Service struct {
	emitter  *outboxgorm.Emitter
	registry outbox.Registry
	log      *slog.Logger
}

var _ Emitter = (*Service)(nil)

// NewService returns a service.
func NewService(config Config) (*Service, error) {
	layout := registry.Layout()
	if config.Layout != nil {
		layout = *config.Layout
	}
	config.Logger = cmp.Or(config.Logger, slog.New(slog.DiscardHandler))
	if err := registry.CheckValues(layout); err != nil {
		return nil, err
	}
	emitter, err := outboxgorm.New(layout, outbox.EmitConfig{})
	if err != nil {
		return nil, fmt.Errorf("set up the emitter: %w", err)
	}
	// What the topics are called is the publisher's business.
	routes, err := registry.New(registry.DefaultTopics())
	if err != nil {
		return nil, fmt.Errorf("set up the registry: %w", err)
	}
	return &Service{emitter: emitter, registry: routes, log: config.Logger}, nil
}

// Emit writes the event in the caller's transaction, and never commits: the event exists if and only if the caller's
// changes do. It refuses an event that the publisher would have to give up, with outbox.ErrInvalidEvent; the
// transaction stays usable.
func (s *Service) Emit(tx *gorm.DB, event DomainEvent) (outbox.Emitted, error) {
	row, err := s.row(event)
	if err != nil {
		return outbox.Emitted{}, fmt.Errorf("outbox: %w: %w", outbox.ErrInvalidEvent, err)
	}
	if tx == nil || tx.Statement == nil {
		return outbox.Emitted{}, fmt.Errorf("outbox: the transaction is nil or empty: %w", outboxgorm.ErrNoTransaction)
	}
	ctx := tx.Statement.Context
	emitted, err := s.emitter.Emit(ctx, tx, row)
	if err == nil {
		s.log.DebugContext(ctx, "event emitted", "event_id", row.ID, "event_type", row.Type,
			"aggregate_type", row.AggregateType, "aggregate_id", row.AggregateID)
	}
	return emitted, err
}

// row returns the event as it is stored, checked as the publisher checks it.
func (s *Service) row(event DomainEvent) (outbox.Event, error) {
	var row outbox.Event
	switch {
	case event.Data == nil:
		return row, errors.New("the event has no data")
	case event.AggregateID == uuid.Nil:
		return row, errors.New("the event has no aggregate id")
	}
	if event.ID == uuid.Nil {
		var err error
		if event.ID, err = uuid.NewV7(); err != nil {
			return row, fmt.Errorf("make an event id: %w", err)
		}
	}
	if event.OccurredAt.IsZero() {
		event.OccurredAt = time.Now()
	}
	data, err := json.Marshal(event.Data)
	if err != nil {
		return row, fmt.Errorf("write the data: %w", err)
	}
	if string(data) == "null" { // a nil pointer, which has no event type either
		return row, errors.New("the event's data is nil")
	}
	payload, err := json.Marshal(OutboxPayloadEnvelope{
		Version: payloads.Version, EventID: event.ID.String(), OccurredAt: event.OccurredAt.UTC(), Actor: event.Actor, Data: data,
	})
	if err != nil {
		return row, fmt.Errorf("write the envelope: %w", err)
	}
	eventType := string(event.Data.EventType())
	row = outbox.Event{
		ID: event.ID, Type: eventType, AggregateType: s.registry[eventType].AggregateType, AggregateID: event.AggregateID.String(), Payload: payload,
	}
	return row, s.registry.Check(&outbox.Message{Event: row})
}
