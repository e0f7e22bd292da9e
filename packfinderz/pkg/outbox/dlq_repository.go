package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/outboxgorm"
	"github.com/packfinderz/outbox/packfinderz/pkg/db/model"
	"github.com/packfinderz/outbox/packfinderz/pkg/enums"
)

// DLQRepository reads outbox_dlq, and writes to it for people who give up an event by hand. The publisher writes its
// own rows, in the transaction that settles the event. Nothing here retries an event.
type DLQRepository struct{ db *gorm.DB }

// NewDLQRepository returns a repository.
func NewDLQRepository(db *gorm.DB) (*DLQRepository, error) {
	if db == nil || db.Statement == nil {
		return nil, errors.New("outbox: set up the DLQ repository: the *gorm.DB is nil, or was not made by gorm.Open")
	}
	return &DLQRepository{db}, nil
}

// ErrNotWaiting means that an event cannot be given up: it does not exist, or is published or dead.
var ErrNotWaiting = errors.New("outbox: the event does not wait to be published")

// GiveUp writes the DLQ row of a waiting event, in the caller's transaction. From the commit on, the publisher skips
// the event. The row has the envelope as it is stored.
func (r *DLQRepository) GiveUp(tx *gorm.DB, eventID uuid.UUID, reason enums.ErrorReason, cause error) (model.OutboxDLQ, error) {
	if tx == nil || tx.Statement == nil {
		return model.OutboxDLQ{}, fmt.Errorf("outbox: the transaction is nil or empty: %w", outboxgorm.ErrNoTransaction)
	}
	if _, ok := tx.Statement.ConnPool.(gorm.TxCommitter); !ok {
		return model.OutboxDLQ{}, outboxgorm.ErrNoTransaction
	}
	event, err := lockWaiting(tx, eventID)
	if err != nil {
		return model.OutboxDLQ{}, err
	}
	text := outbox.ErrorText(cause)
	letter := model.OutboxDLQ{
		EventID: event.ID, EventType: event.EventType, AggregateType: event.AggregateType, AggregateID: event.AggregateID,
		PayloadJSON: event.PayloadJSON, ErrorReason: reason, CreatedAt: event.CreatedAt, AttemptCount: event.AttemptCount, LastError: &text,
	}
	if err := tx.Create(&letter).Error; err != nil {
		return letter, fmt.Errorf("outbox: write the DLQ row of event %s: %w", eventID, err)
	}
	if err := tx.Model(&event).Update("last_error", text).Error; err != nil {
		return letter, fmt.Errorf("outbox: mark event %s: %w", eventID, err)
	}
	return letter, nil
}

// lockWaiting locks a waiting event; if a publisher has it, that takes until the publisher is done. It looks for a DLQ
// row in a second statement: the one that waited does not see what the publisher wrote meanwhile.
func lockWaiting(tx *gorm.DB, id uuid.UUID) (event model.OutboxEvent, err error) {
	err = tx.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}).Take(&event, "id = ? AND published_at IS NULL", id).Error
	switch {
	case errors.Is(err, gorm.ErrRecordNotFound):
		return event, fmt.Errorf("%w: %s", ErrNotWaiting, id)
	case err != nil:
		return event, fmt.Errorf("outbox: lock event %s: %w", id, err)
	}
	var letters int64
	err = tx.Model(&model.OutboxDLQ{}).Where("event_id = ? AND retried_at IS NULL", id).Count(&letters).Error
	switch {
	case err != nil:
		return event, fmt.Errorf("outbox: look for the DLQ row of event %s: %w", id, err)
	case letters > 0:
		return event, fmt.Errorf("%w: %s", ErrNotWaiting, id)
	}
	return event, nil
}

// ByEvent returns the DLQ rows of an event, latest first; a retried event can have several.
func (r *DLQRepository) ByEvent(ctx context.Context, eventID uuid.UUID) ([]model.OutboxDLQ, error) {
	var letters []model.OutboxDLQ
	err := r.db.WithContext(ctx).Where("event_id = ?", eventID).Order("failed_at DESC, id").Find(&letters).Error
	if err != nil {
		return nil, fmt.Errorf("outbox: read the DLQ rows of event %s: %w", eventID, err)
	}
	return letters, nil
}

// DLQFilter selects DLQ rows.
type DLQFilter struct {
	// Reason selects one reason; empty for all.
	Reason enums.ErrorReason
	// EventType selects one event type; empty for all.
	EventType enums.EventType
	// Since selects rows that failed at or after it; zero for all.
	Since time.Time
	// Limit is the largest number of rows. Default 100.
	Limit int
}

const defaultDLQLimit = 100

// List returns DLQ rows that were not retried, latest first.
func (r *DLQRepository) List(ctx context.Context, filter DLQFilter) ([]model.OutboxDLQ, error) {
	query := r.db.WithContext(ctx).Where("retried_at IS NULL")
	if filter.Reason != "" {
		query = query.Where("error_reason = ?", filter.Reason)
	}
	if filter.EventType != "" {
		query = query.Where("event_type = ?", filter.EventType)
	}
	if !filter.Since.IsZero() {
		query = query.Where("failed_at >= ?", filter.Since)
	}
	if filter.Limit <= 0 {
		filter.Limit = defaultDLQLimit
	}
	var letters []model.OutboxDLQ
	if err := query.Order("failed_at DESC, id").Limit(filter.Limit).Find(&letters).Error; err != nil {
		return nil, fmt.Errorf("outbox: read the DLQ: %w", err)
	}
	return letters, nil
}
