package modkit

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/pgstore"
)

// Store offers the calls of the ModKit contract, claim_batch, ack and nack, over the same
// store that the relay uses. A module that wants a relay does not need it.
type Store struct {
	store *pgstore.Store
	retry outbox.RetryPolicy
}

// StoreConfig adjusts a Store. The zero value serves all namespaces.
type StoreConfig struct {
	// Layout is the table. Default: Layout().
	Layout *pgstore.Layout
	// WorkerID is the worker's name in the rows it holds. Default: a new UUID.
	WorkerID uuid.UUID
	// Namespace limits the store to one; empty for all.
	Namespace string
	// LeaseDuration is how long a claim lasts. Default 30 s.
	LeaseDuration time.Duration
	// MaxAttempts is the number of attempts after which a row is dead. Default 10.
	MaxAttempts int
	// Retry is the delay between attempts.
	Retry outbox.RetryPolicy
}

// NewStore makes a store.
func NewStore(pool *pgxpool.Pool, config StoreConfig) (*Store, error) {
	layout := Layout()
	if config.Layout != nil {
		layout = *config.Layout
	}
	retry, err := config.Retry.WithDefaults()
	if err != nil {
		return nil, err
	}
	store, err := pgstore.New(pool, layout, pgstore.Config{
		WorkerID: config.WorkerID, Lease: config.LeaseDuration, MaxAttempts: config.MaxAttempts,
		Filter: pgstore.Filter{Namespace: config.Namespace},
	})
	if err != nil {
		return nil, err
	}
	return &Store{store: store, retry: retry}, nil
}

// ClaimedMessage is a message that this worker holds. It knows its own claim: an ack
// proves it.
type ClaimedMessage struct {
	outbox.Message
	claim outbox.Batch
}

// ClaimBatch takes up to size due messages. Each has to be acked or nacked within the lease.
func (s *Store) ClaimBatch(ctx context.Context, size int) ([]ClaimedMessage, error) {
	batch, err := s.store.Claim(ctx, size)
	if err != nil {
		return nil, err
	}
	claims := pgstore.Singles(batch)
	messages := make([]ClaimedMessage, len(claims))
	for i, claim := range claims {
		messages[i] = ClaimedMessage{Message: claim.Messages()[0], claim: claim}
	}
	return messages, nil
}

// Ack marks a message as delivered. If this claim no longer holds the row it fails with
// outbox.ErrLeaseLost: log it and do nothing more, the row is somebody else's.
func (s *Store) Ack(ctx context.Context, message ClaimedMessage) error {
	return settle(ctx, message, outbox.Outcome{Kind: outbox.Delivered})
}

// Nack records a failed attempt: the row waits for its next one, or is dead if it was the
// last. It fails with outbox.ErrLeaseLost as Ack does.
func (s *Store) Nack(ctx context.Context, message ClaimedMessage, cause error) error {
	outcome := outbox.Outcome{Kind: outbox.Failed, Error: outbox.ErrorText(cause), Delay: s.retry.Delay(message.Attempt)}
	if message.Attempt >= message.MaxAttempts {
		outcome = outbox.Outcome{Kind: outbox.Died, Error: outcome.Error, Reason: outbox.ReasonMaxAttempts}
	}
	return settle(ctx, message, outcome)
}

func settle(ctx context.Context, message ClaimedMessage, outcome outbox.Outcome) error {
	if message.claim == nil {
		return fmt.Errorf("outbox: event %s was not claimed by ClaimBatch", message.ID)
	}
	lost, err := message.claim.Settle(ctx, []outbox.Outcome{outcome})
	if err != nil {
		return err
	}
	if len(lost) > 0 {
		return fmt.Errorf("outbox: event %s: %w", message.ID, outbox.ErrLeaseLost)
	}
	return nil
}
