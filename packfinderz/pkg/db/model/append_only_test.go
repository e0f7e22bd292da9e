package model_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/packfinderz/outbox/packfinderz/internal/pftest"
	"github.com/packfinderz/outbox/packfinderz/pkg/db/model"
	"github.com/packfinderz/outbox/packfinderz/pkg/enums"
)

// However GORM is asked to change a row, only the three columns change that may. The database would refuse
// the others by a trigger, so that no error shows that GORM did not even ask.
func TestOnlyPublishedAtAttemptCountAndLastErrorChange(t *testing.T) {
	t.Parallel()
	pool := pftest.Pool(t)
	db := pftest.GORM(t, pool)
	text := "timeout"
	now := time.Now().UTC().Truncate(time.Microsecond)
	other := model.OutboxEvent{
		EventType: enums.AdCreated, AggregateType: enums.AggregateAd, AggregateID: uuid.New(), PayloadJSON: json.RawMessage(`{"b": 2}`),
		CreatedAt: now.Add(time.Hour), PublishedAt: &now, AttemptCount: 7, LastError: &text,
	}
	for name, change := range map[string]func(event model.OutboxEvent) *gorm.DB{
		"Save": func(event model.OutboxEvent) *gorm.DB {
			changed := other
			changed.ID = event.ID
			return db.Save(&changed)
		},
		"Updates": func(event model.OutboxEvent) *gorm.DB { return db.Model(&event).Updates(other) },
		"UpdateColumns": func(event model.OutboxEvent) *gorm.DB {
			return db.Model(&event).Select("*").Omit("ID").UpdateColumns(other)
		},
		"a map": func(event model.OutboxEvent) *gorm.DB {
			return db.Model(&event).Updates(map[string]any{
				"event_type": other.EventType, "aggregate_type": other.AggregateType, "aggregate_id": other.AggregateID,
				"payload_json": other.PayloadJSON, "created_at": other.CreatedAt,
				"published_at": other.PublishedAt, "attempt_count": other.AttemptCount, "last_error": other.LastError,
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			event := model.OutboxEvent{
				ID: uuid.New(), EventType: enums.OrderExpired, AggregateType: enums.AggregateVendorOrder,
				AggregateID: uuid.New(), PayloadJSON: json.RawMessage(`{"a": 1}`),
			}
			if err := db.Create(&event).Error; err != nil {
				t.Fatal(err)
			}
			var want, got model.OutboxEvent
			if err := db.Take(&want, "id = ?", event.ID).Error; err != nil {
				t.Fatal(err)
			}
			if want.CreatedAt.IsZero() || want.PublishedAt != nil || want.AttemptCount != 0 || want.LastError != nil {
				t.Fatalf("a new row is %+v", want)
			}
			if err := change(event).Error; err != nil {
				t.Fatal(err)
			}
			if err := db.Take(&got, "id = ?", event.ID).Error; err != nil {
				t.Fatal(err)
			}
			if got.PublishedAt == nil || !got.PublishedAt.Equal(now) || got.AttemptCount != 7 || got.LastError == nil || *got.LastError != text {
				t.Errorf("what may change did not: %+v", got)
			}
			got.PublishedAt, got.AttemptCount, got.LastError = nil, 0, nil
			if !reflect.DeepEqual(got, want) {
				t.Errorf("the row was\n  %+v\nand is\n  %+v", want, got)
			}
		})
	}
}

// Of a dead letter only retried_at changes.
func TestOnlyRetriedAtOfADeadLetterChanges(t *testing.T) {
	t.Parallel()
	pool := pftest.Pool(t)
	db := pftest.GORM(t, pool)
	now := time.Now().UTC().Truncate(time.Microsecond)
	letter := model.OutboxDLQ{
		EventID: uuid.New(), EventType: enums.AdCreated, AggregateType: enums.AggregateAd, AggregateID: uuid.New(),
		PayloadJSON: json.RawMessage(`{"a": 1}`), ErrorReason: enums.ReasonRejected, CreatedAt: now.Add(-time.Hour), AttemptCount: 3,
	}
	if err := db.Create(&letter).Error; err != nil {
		t.Fatal(err)
	}
	var want, got model.OutboxDLQ
	if err := db.Take(&want, "id = ?", letter.ID).Error; err != nil {
		t.Fatal(err)
	}
	changed := model.OutboxDLQ{
		ID: letter.ID, EventID: uuid.New(), EventType: enums.AdExpired, AggregateType: enums.AggregateStore, AggregateID: uuid.New(),
		PayloadJSON: json.RawMessage(`{}`), ErrorReason: enums.ReasonTerminal, FailedAt: now, CreatedAt: now, AttemptCount: 4, RetriedAt: &now,
	}
	if err := db.Save(&changed).Error; err != nil {
		t.Fatal(err)
	}
	if err := db.Take(&got, "id = ?", letter.ID).Error; err != nil {
		t.Fatal(err)
	}
	if got.RetriedAt == nil || !got.RetriedAt.Equal(now) {
		t.Errorf("retried_at did not change: %+v", got)
	}
	if got.RetriedAt = nil; !reflect.DeepEqual(got, want) {
		t.Errorf("the row was\n  %+v\nand is\n  %+v", want, got)
	}
}
