package modkit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/packfinderz/outbox"
)

// ClaimCfg says what a claim takes, and on what terms.
type ClaimCfg struct {
	// BatchSize is how many messages it takes at most, between 1 and 100,000.
	BatchSize int
	// LeaseDuration is how long they are this worker's. Default: the module's.
	LeaseDuration time.Duration
	// MaxAttempts is the number of deliveries, with the first, that a message has at most: what has
	// had as many is dead instead of claimed, and a Nack of the last makes it so. Default: the
	// module's.
	MaxAttempts int
}

// ClaimBatch takes due messages, and those whose lease has run out, with an attempt counted for
// each. Each has to be acked or nacked within the lease, or renewed. Rows that cannot be read as a
// message are dead afterwards, and not among them.
func (m *Module) ClaimBatch(ctx context.Context, cfg ClaimCfg) ([]ClaimedMessage, error) {
	if cfg.BatchSize < 1 || cfg.BatchSize > outbox.MaxBatchSize {
		return nil, fmt.Errorf("outbox: ClaimCfg.BatchSize is %d; a claim takes between 1 and %d messages", cfg.BatchSize, outbox.MaxBatchSize)
	}
	store, err := m.store(cfg)
	if err != nil {
		return nil, err
	}
	batch, err := store.Claim(ctx, outbox.ClaimRequest{Limit: cfg.BatchSize})
	if err != nil {
		return nil, err
	}
	splits, ok := batch.(interface{ Singles() []outbox.Batch })
	if !ok {
		return nil, fmt.Errorf("outbox: a %T cannot be settled message by message", batch)
	}
	claims := splits.Singles()
	messages := make([]ClaimedMessage, 0, len(claims))
	for _, claim := range claims {
		claimed := &claim.Messages()[0]
		message := claimedMessage(claimed, claim)
		if claimed.Invalid == nil {
			messages = append(messages, message)
			continue
		}
		if err := m.settle(ctx, message, outbox.InvalidRow(claimed.Invalid)); err != nil && !errors.Is(err, outbox.ErrLeaseLost) {
			return nil, err
		}
	}
	return messages, nil
}

// Ack marks a message as delivered. If this claim no longer holds the row it fails with
// outbox.ErrLeaseLost: log it and do nothing more, the row is somebody else's. A lease that has ended
// is lost when somebody takes the row over, and not before.
func (m *Module) Ack(ctx context.Context, message ClaimedMessage) error {
	return m.settle(ctx, message, outbox.Outcome{Kind: outbox.Delivered})
}

// Nack records a failed attempt: the row waits for its next one, or is dead if it was the
// last or the cause is marked with outbox.Terminal. It fails with outbox.ErrLeaseLost as Ack does.
func (m *Module) Nack(ctx context.Context, message ClaimedMessage, cause error) error {
	if cause == nil {
		return fmt.Errorf("outbox: event %s cannot be nacked without an error", message.ID)
	}
	return m.settle(ctx, message, outbox.FailedAttempt(message.Attempts, message.maxAttempts, cause, m.retry.Delay(message.Attempts)))
}

// Renew keeps a message for another lease, as long as its claim's. It fails with
// outbox.ErrLeaseLost as Ack does.
func (m *Module) Renew(ctx context.Context, message ClaimedMessage) error {
	if err := m.owns(message); err != nil {
		return err
	}
	if err := message.claim.Renew(ctx); err != nil {
		return fmt.Errorf("outbox: event %s: %w", message.ID, err)
	}
	return nil
}

// Release gives a message back as if it had not been claimed, for a worker that ends before
// it has tried. It fails with outbox.ErrLeaseLost as Ack does.
func (m *Module) Release(ctx context.Context, message ClaimedMessage) error {
	return m.settle(ctx, message, outbox.Outcome{Kind: outbox.Released})
}

func (m *Module) settle(ctx context.Context, message ClaimedMessage, outcome outbox.Outcome) error {
	if err := m.owns(message); err != nil {
		return err
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

// owns refuses what no ClaimBatch has claimed, and the messages of another namespace.
func (m *Module) owns(message ClaimedMessage) error {
	switch {
	case message.claim == nil:
		return fmt.Errorf("outbox: event %s was not claimed by ClaimBatch; what a dispatcher hands out it settles itself", message.ID)
	case m.config.Namespace != AllNamespaces && message.claim.Messages()[0].Namespace != m.config.Namespace:
		return fmt.Errorf("outbox: event %s is not of the module's namespace, %q", message.ID, m.config.Namespace)
	}
	return nil
}
