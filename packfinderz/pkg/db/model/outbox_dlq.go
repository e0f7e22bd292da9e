package model

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/packfinderz/outbox/packfinderz/pkg/enums"
)

// OutboxDLQ is a row of outbox_dlq: a dead event, with the reason. Only RetriedAt changes, when a person retries the
// event.
type OutboxDLQ struct {
	ID            uuid.UUID           `gorm:"type:uuid;primaryKey;default:gen_random_uuid();<-:create"`
	EventID       uuid.UUID           `gorm:"type:uuid;not null;<-:create;index:idx_outbox_dlq_event_id"`
	EventType     enums.EventType     `gorm:"type:event_type_enum;not null;<-:create"`
	AggregateType enums.AggregateType `gorm:"type:aggregate_type_enum;not null;<-:create"`
	AggregateID   uuid.UUID           `gorm:"type:uuid;not null;<-:create"`
	// PayloadJSON is the event's envelope, as it was stored.
	PayloadJSON json.RawMessage   `gorm:"type:jsonb;not null;<-:create"`
	ErrorReason enums.ErrorReason `gorm:"type:outbox_dlq_reason_enum;not null;<-:create"`
	FailedAt    time.Time         `gorm:"type:timestamptz;not null;default:now();<-:create"`
	// CreatedAt, AttemptCount and LastError are the event's own.
	CreatedAt    time.Time  `gorm:"type:timestamptz;not null;autoCreateTime:false;<-:create"`
	AttemptCount int        `gorm:"type:integer;not null;<-:create"`
	LastError    *string    `gorm:"type:text;<-:create"`
	RetriedAt    *time.Time `gorm:"type:timestamptz"`
}

// BeforeCreate gives a row that has no id a UUIDv7.
func (d *OutboxDLQ) BeforeCreate(*gorm.DB) error { return giveID(&d.ID) }

// TableName is outbox_dlq.
func (OutboxDLQ) TableName() string { return "outbox_dlq" }
