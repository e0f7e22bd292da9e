package outbox

import (
	"context"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/packfinderz/outbox"
)

// The backend's services depend on these, so that their tests need no database and no Redis.

// Emitter is what a domain service needs of Service.
type Emitter interface {
	// Emit writes the event in the caller's transaction, and never commits.
	Emit(tx *gorm.DB, event DomainEvent) (outbox.Emitted, error)
}

// Repository fetches unpublished rows under row locks. NewRepository returns one.
type Repository interface {
	// FetchUnpublishedForPublish locks up to limit unpublished rows, oldest first, and skips rows that others have
	// locked. Call Commit or Rollback afterwards.
	FetchUnpublishedForPublish(ctx context.Context, limit int) (Fetched, error)
}

// Fetched are rows locked by their own transaction until Commit or Rollback.
type Fetched interface {
	// Events returns the rows, except for those that cannot be read as an event.
	Events() []outbox.Message
	// MarkPublished records that Pub/Sub has acknowledged the event.
	MarkPublished(id uuid.UUID) error
	// MarkFailed records a failed attempt and its error. The event is dead, with a row in outbox_dlq, if this was the
	// last attempt or the error is terminal.
	MarkFailed(id uuid.UUID, cause error) error
	// Commit writes the marks. Rows without one stay as they were.
	Commit(ctx context.Context) error
	// Rollback frees the rows and drops the marks. It is a no-op after Commit.
	Rollback()
}

// IdempotencyManager is what a consumer needs of idempotency.Manager.
type IdempotencyManager interface {
	// CheckAndMarkProcessed marks an event as handled by a consumer, and reports whether it was already. A ttl of zero is the
	// manager's own.
	CheckAndMarkProcessed(ctx context.Context, consumer string, event uuid.UUID, ttl time.Duration) (already bool, err error)
	// Delete takes the mark back, after the effect has failed.
	Delete(ctx context.Context, consumer string, event uuid.UUID) error
}
