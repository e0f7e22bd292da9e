package modkit

import (
	"context"
	"errors"
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
	// Topics limits it to some topics; empty for all.
	Topics []string
	// TenantID limits it to one tenant; zero for all of them and for what has none.
	TenantID uuid.UUID
	// LeaseDuration is how long a claim lasts. Default 30 s.
	LeaseDuration time.Duration
	// MaxAttempts is the number of attempts after which a row is dead. Default 10.
	MaxAttempts int
	// Retry is the delay between attempts.
	Retry outbox.RetryPolicy
}

// NewStore makes a store.
func NewStore(pool *pgxpool.Pool, config StoreConfig) (*Store, error) {
	retry, err := config.Retry.WithDefaults()
	if err != nil {
		return nil, err
	}
	store, err := config.open(pool)
	if err != nil {
		return nil, err
	}
	return &Store{store: store, retry: retry}, nil
}

// open is the store below, which a relay can use, too.
func (c *StoreConfig) open(pool *pgxpool.Pool) (*pgstore.Store, error) {
	layout := Layout()
	if c.Layout != nil {
		layout = *c.Layout
	}
	return pgstore.New(pool, layout, pgstore.Config{
		WorkerID: c.WorkerID, Lease: c.LeaseDuration, MaxAttempts: c.MaxAttempts,
		Filter: pgstore.Filter{Namespace: c.Namespace, Topics: c.Topics, TenantID: c.TenantID},
	})
}

// ClaimedMessage is a message that this worker holds; Attempt has counted this attempt
// already. It knows its own claim: an ack proves it.
type ClaimedMessage struct {
	outbox.Message
	claim outbox.Batch
}

// ClaimBatch takes up to size due messages. Each has to be acked or nacked within the lease.
// Rows that cannot be read as a message are dead afterwards, and not among them.
func (s *Store) ClaimBatch(ctx context.Context, size int) ([]ClaimedMessage, error) {
	batch, err := s.store.Claim(ctx, outbox.ClaimRequest{Limit: size})
	if err != nil {
		return nil, err
	}
	claims := pgstore.Singles(batch)
	messages := make([]ClaimedMessage, 0, len(claims))
	for _, claim := range claims {
		message := ClaimedMessage{Message: claim.Messages()[0], claim: claim}
		if message.Invalid == nil {
			messages = append(messages, message)
			continue
		}
		if err := settle(ctx, message, outbox.InvalidRow(message.Invalid)); err != nil && !errors.Is(err, outbox.ErrLeaseLost) {
			return nil, err
		}
	}
	return messages, nil
}

// Ack marks a message as delivered. If this claim no longer holds the row it fails with
// outbox.ErrLeaseLost: log it and do nothing more, the row is somebody else's.
func (s *Store) Ack(ctx context.Context, message ClaimedMessage) error {
	return settle(ctx, message, outbox.Outcome{Kind: outbox.Delivered})
}

// Nack records a failed attempt: the row waits for its next one, or is dead if it was the
// last or the cause is marked with outbox.Terminal. It fails with outbox.ErrLeaseLost as Ack does.
func (s *Store) Nack(ctx context.Context, message ClaimedMessage, cause error) error {
	outcome := outbox.Outcome{Kind: outbox.Failed, Error: outbox.ErrorText(cause)}
	switch {
	case outbox.Classify(cause) == outbox.ClassTerminal:
		outcome.Kind, outcome.Reason = outbox.Died, outbox.ReasonOf(cause)
	case message.Attempt >= message.MaxAttempts:
		outcome.Kind, outcome.Reason = outbox.Died, outbox.ReasonMaxAttempts
	default:
		outcome.Delay = s.retry.Delay(message.Attempt)
	}
	return settle(ctx, message, outcome)
}

// Release gives a message back as if it had not been claimed, for a worker that ends before
// it has tried. It fails with outbox.ErrLeaseLost as Ack does.
func (s *Store) Release(ctx context.Context, message ClaimedMessage) error {
	return settle(ctx, message, outbox.Outcome{Kind: outbox.Released})
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
