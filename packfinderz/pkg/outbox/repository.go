package outbox

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"gorm.io/gorm"

	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/layouts/packfinderz"
	"github.com/packfinderz/outbox/outboxgorm"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/registry"
	"github.com/packfinderz/outbox/pgstore"
)

// RowRepository fetches unpublished rows under row locks, and marks each as published or failed before it commits. It is the
// store of the publisher itself, for tools that want to go through rows one by one; there is no second way to claim.
type RowRepository struct {
	store *packfinderz.Store
	pool  *pgxpool.Pool
}

var _ Repository = (*RowRepository)(nil)

// RepositoryConfig is what a RowRepository can be told. The zero value is the contract's table and maximum.
type RepositoryConfig struct {
	// Layout is a table that differs from the contract's, as layoutfile.Load reads it. Default: the contract's.
	Layout *layouts.Layout
	// MaxAttempts is after how many failures an event is dead. Default: the layout's, 10.
	MaxAttempts int
}

// NewRepository makes a repository on the database that a *gorm.DB is on, and refuses a table that does not fit. Its sessions are
// its own, because rows stay locked between two calls; close it in the end.
func NewRepository(ctx context.Context, db *gorm.DB, config RepositoryConfig) (*RowRepository, error) {
	layout := registry.Layout()
	if config.Layout != nil {
		layout = *config.Layout
	}
	pool, err := outboxgorm.Pool(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("outbox: set up the repository: %w", err)
	}
	store, err := packfinderz.NewStore(pool, layout, pgstore.Config{MaxAttempts: config.MaxAttempts})
	if err == nil {
		err = pgstore.Verify(ctx, pool, layout)
	}
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("outbox: set up the repository: %w", err)
	}
	return &RowRepository{store, pool}, nil
}

// FetchUnpublishedForPublish locks up to limit unpublished rows, oldest first, passing over those that others have locked.
// Commit or Rollback has to be called.
func (r *RowRepository) FetchUnpublishedForPublish(ctx context.Context, limit int) (Fetched, error) {
	rows, err := r.store.FetchUnpublishedForPublish(ctx, limit)
	if err != nil {
		return nil, err // and no Fetched that is nil inside
	}
	return rows, nil
}

// Close ends the repository's sessions. Rows that are still fetched are rolled back: a session that holds some would
// keep Close waiting.
func (r *RowRepository) Close() {
	r.store.Close()
	r.pool.Close()
}
