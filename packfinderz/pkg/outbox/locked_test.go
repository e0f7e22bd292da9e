package outbox_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	engine "github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/packfinderz/pkg/db/model"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/idempotency"
)

// The names that the contract locks, as code that stands on them would use them: a name that changes does not compile.
var (
	_ = model.OutboxEvent{
		ID: uuid.UUID{}, EventType: "", AggregateType: "", AggregateID: uuid.UUID{}, PayloadJSON: nil, CreatedAt: time.Time{},
		PublishedAt: nil, AttemptCount: 0, LastError: nil,
	}
	_ = model.OutboxDLQ{
		EventID: uuid.UUID{}, EventType: "", AggregateType: "", AggregateID: uuid.UUID{}, PayloadJSON: nil, ErrorReason: "", FailedAt: time.Time{},
	}
	_ func(*outbox.Service, *gorm.DB, outbox.DomainEvent) (engine.Emitted, error)                 = (*outbox.Service).Emit
	_ func(*idempotency.Manager, context.Context, string, uuid.UUID, time.Duration) (bool, error) = (*idempotency.Manager).CheckAndMarkProcessed
	_ func(*idempotency.Manager, context.Context, string, uuid.UUID) error                        = (*idempotency.Manager).Delete
	_ func(outbox.Repository, context.Context, int) (outbox.Fetched, error)                       = outbox.Repository.FetchUnpublishedForPublish
	_ outbox.IdempotencyManager                                                                   = (*idempotency.Manager)(nil)
)

// The envelope has the fields of the contract, with their types and JSON names, in its order, and no others.
func TestLockedEnvelope(t *testing.T) {
	t.Parallel()
	for of, want := range map[reflect.Type][]string{
		reflect.TypeFor[outbox.OutboxPayloadEnvelope](): {
			`Version int json:"version"`, `EventID string json:"eventId"`, `OccurredAt time.Time json:"occurredAt"`,
			`Actor *packfinderz.ActorRef json:"actor,omitempty"`, `Data json.RawMessage json:"data"`,
		},
		reflect.TypeFor[outbox.ActorRef](): {`Type string json:"type"`, `ID string json:"id"`},
	} {
		var got []string
		for i := range of.NumField() {
			field := of.Field(i)
			got = append(got, fmt.Sprint(field.Name, " ", field.Type, " ", field.Tag))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s is %q, want %q", of, got, want)
		}
	}
}
