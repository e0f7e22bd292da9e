// Package model has the GORM models of the outbox's two tables. Both are append-only: fixed fields are written at
// creation only, and a trigger of the database refuses other changes.
package model

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/packfinderz/outbox/packfinderz/pkg/enums"
)

// OutboxEvent is a row of outbox_events: an event to publish. Only the publisher changes it, and only PublishedAt,
// AttemptCount and LastError.
type OutboxEvent struct {
	ID            uuid.UUID           `gorm:"type:uuid;primaryKey;<-:create"`
	EventType     enums.EventType     `gorm:"type:event_type_enum;not null;<-:create;index:idx_outbox_events_event_type"`
	AggregateType enums.AggregateType `gorm:"type:aggregate_type_enum;not null;<-:create;index:idx_outbox_events_aggregate,priority:1"`
	AggregateID   uuid.UUID           `gorm:"type:uuid;not null;<-:create;index:idx_outbox_events_aggregate,priority:2"`
	// PayloadJSON is the event's envelope.
	PayloadJSON json.RawMessage `gorm:"type:jsonb;not null;<-:create"`
	// CreatedAt is the database's time, not this process's.
	CreatedAt    time.Time  `gorm:"type:timestamptz;not null;default:now();autoCreateTime:false;<-:create"`
	PublishedAt  *time.Time `gorm:"type:timestamptz;index:idx_outbox_events_published_at"`
	AttemptCount int        `gorm:"type:integer;not null;default:0"`
	LastError    *string    `gorm:"type:text"`
}

// BeforeCreate gives a row that has no id a UUIDv7.
func (e *OutboxEvent) BeforeCreate(*gorm.DB) error { return giveID(&e.ID) }

// TableName is outbox_events.
func (OutboxEvent) TableName() string { return "outbox_events" }

// giveID sets a missing id to a UUIDv7, so that ids sort by time.
func giveID(id *uuid.UUID) error {
	if *id != uuid.Nil {
		return nil
	}
	made, err := uuid.NewV7()
	if err != nil {
		return fmt.Errorf("make a row's id: %w", err)
	}
	*id = made
	return nil
}
