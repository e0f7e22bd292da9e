package outbox

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"gorm.io/gorm"

	"github.com/packfinderz/outbox"
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

	mu   sync.Mutex
	open map[*fetched]struct{}
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
	return &RowRepository{store: store, pool: pool, open: make(map[*fetched]struct{})}, nil
}

// FetchUnpublishedForPublish locks up to limit unpublished rows, oldest first, passing over those that others have locked.
// Commit or Rollback has to be called.
func (r *RowRepository) FetchUnpublishedForPublish(ctx context.Context, limit int) (Fetched, error) {
	rows, err := r.store.FetchUnpublishedForPublish(ctx, limit)
	if err != nil {
		return nil, err // and no Fetched that is nil inside
	}
	f := &fetched{rows: rows, repository: r}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open[f] = struct{}{}
	return f, nil
}

// Close ends the repository's sessions. Rows that are still fetched are rolled back: a session that holds some would
// keep Close waiting.
func (r *RowRepository) Close() {
	r.mu.Lock()
	open := slices.Collect(maps.Keys(r.open))
	r.mu.Unlock()
	for _, f := range open {
		f.Rollback()
	}
	r.pool.Close()
}

// fetched are rows that the repository knows of until their end. Close may end them while their owner is at work.
type fetched struct {
	repository *RowRepository
	mu         sync.Mutex
	rows       *packfinderz.Fetched
}

func (f *fetched) Events() []outbox.Message { return f.rows.Events() }

func (f *fetched) MarkPublished(id uuid.UUID) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rows.MarkPublished(id)
}

func (f *fetched) MarkFailed(id uuid.UUID, cause error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rows.MarkFailed(id, cause)
}

func (f *fetched) Commit(ctx context.Context) error {
	defer f.forget()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rows.Commit(ctx)
}

func (f *fetched) Rollback() {
	defer f.forget()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rows.Rollback()
}

func (f *fetched) forget() {
	f.repository.mu.Lock()
	defer f.repository.mu.Unlock()
	delete(f.repository.open, f)
}
