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

// RowRepository fetches unpublished rows under row locks, and marks each as published or failed before it commits. It
// uses the publisher's own store, for tools that handle rows one by one.
type RowRepository struct {
	store *packfinderz.Store
	pool  *pgxpool.Pool
}

var _ Repository = (*RowRepository)(nil)

// RepositoryConfig configures a RowRepository. The zero value is ready to use.
type RepositoryConfig struct {
	// Layout is a table that differs from the contract's, as layoutfile.Load reads it. Default: the contract's.
	Layout *layouts.Layout
	// MaxAttempts is the number of failures after which an event is dead. Default: the layout's, 10.
	MaxAttempts int
}

// NewRepository returns a repository on the database of a *gorm.DB. It refuses a table that does not fit. It opens its
// own connections, because rows stay locked between two calls; close it when done.
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

// FetchUnpublishedForPublish locks up to limit unpublished rows, oldest first, and skips rows that others have locked.
// Call Commit or Rollback afterwards.
func (r *RowRepository) FetchUnpublishedForPublish(ctx context.Context, limit int) (Fetched, error) {
	rows, err := r.store.FetchUnpublishedForPublish(ctx, limit)
	if err != nil {
		return nil, err // and no Fetched that is nil inside
	}
	return rows, nil
}

// Close rolls back rows that are still fetched, and closes the repository's connections.
func (r *RowRepository) Close() {
	r.store.Close()
	r.pool.Close()
}
