package outbox

import (
	"context"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/packfinderz/outbox"
)

// What the backend's services depend on, so that their own tests can do without a database or Redis.

// Emitter is what a domain service needs of Service.
type Emitter interface {
	// Emit writes the event in the caller's transaction, and never commits.
	Emit(tx *gorm.DB, event DomainEvent) (outbox.Emitted, error)
}

// Repository fetches unpublished rows under row locks. NewRepository makes one.
type Repository interface {
	// FetchUnpublishedForPublish locks up to limit unpublished rows, oldest first, passing over those that others have
	// locked. Commit or Rollback has to be called.
	FetchUnpublishedForPublish(ctx context.Context, limit int) (Fetched, error)
}

// Fetched are rows that are locked by a transaction of their own until Commit or Rollback.
type Fetched interface {
	// Events are the rows, but for those that cannot be read as an event.
	Events() []outbox.Message
	// MarkPublished notes that Pub/Sub has acknowledged the event.
	MarkPublished(id uuid.UUID) error
	// MarkFailed notes a failed attempt: counted, with its error, and dead with a row in outbox_dlq if it was the last or no
	// retry can mend it.
	MarkFailed(id uuid.UUID, cause error) error
	// Commit writes the marks. Rows without one stay as they were.
	Commit(ctx context.Context) error
	// Rollback frees the rows and forgets the marks. After Commit it does nothing.
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
