package outbox

import (
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/layouts/packfinderz"
	"github.com/packfinderz/outbox/pgstore"
)

// Repository fetches unpublished rows under row locks (FetchUnpublishedForPublish), and marks each as
// published or failed before it commits. It is the store of the publisher itself, for tools that want to go
// through rows one by one; there is no second way to claim.
type Repository = packfinderz.Store

// NewRepository makes a repository. A maxAttempts of zero is the default, 10.
func NewRepository(pool *pgxpool.Pool, maxAttempts int) (*Repository, error) {
	repository, err := packfinderz.NewStore(pool, packfinderz.Layout(), pgstore.Config{MaxAttempts: maxAttempts})
	if err != nil {
		return nil, fmt.Errorf("outbox: set up the repository: %w", err)
	}
	return repository, nil
}
