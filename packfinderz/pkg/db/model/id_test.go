package model_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/packfinderz/internal/pftest"
	"github.com/packfinderz/outbox/packfinderz/pkg/db/model"
	"github.com/packfinderz/outbox/packfinderz/pkg/enums"
)

// A row that is created without an id has a UUIDv7, in the model and in the table; one that has an id keeps it.
func TestRowsHaveIDs(t *testing.T) {
	t.Parallel()
	db := pftest.GORM(t, pftest.Pool(t))
	event := model.OutboxEvent{EventType: enums.AdPaused, AggregateType: enums.AggregateAd, AggregateID: uuid.New(), PayloadJSON: json.RawMessage(`{}`)}
	if err := db.Create(&event).Error; err != nil {
		t.Fatal(err)
	}
	letter := model.OutboxDLQ{
		EventID: event.ID, EventType: event.EventType, AggregateType: event.AggregateType, AggregateID: event.AggregateID,
		PayloadJSON: event.PayloadJSON, ErrorReason: enums.ReasonTerminal, CreatedAt: time.Now(),
	}
	if err := db.Create(&letter).Error; err != nil {
		t.Fatal(err)
	}
	var stored model.OutboxEvent
	if err := db.Take(&stored, "id = ?", event.ID).Error; err != nil {
		t.Fatal(err)
	}
	var storedLetter model.OutboxDLQ
	if err := db.Take(&storedLetter, "id = ?", letter.ID).Error; err != nil {
		t.Fatal(err)
	}
	if event.ID.Version() != 7 || letter.ID.Version() != 7 {
		t.Errorf("the ids are %s and %s, want UUIDv7", event.ID, letter.ID)
	}
	own := event
	own.ID = uuid.New()
	want := own.ID
	if err := db.Create(&own).Error; err != nil || own.ID != want {
		t.Errorf("an id of one's own became %s: %v", own.ID, err)
	}
}
