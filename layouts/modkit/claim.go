package modkit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/packfinderz/outbox"
)

// ClaimCfg configures a claim.
type ClaimCfg struct {
	// BatchSize is the maximum number of messages, between 1 and 100,000.
	BatchSize int
	// LeaseDuration is how long this worker holds the messages. Default: the module's.
	LeaseDuration time.Duration
	// MaxAttempts is the maximum number of deliveries of a message, including the first. A message that has had as
	// many is dead instead of claimed, and a Nack of the last one makes it dead. Default: the module's.
	MaxAttempts int
}

// ClaimBatch claims due messages, and those whose lease has run out, and counts an attempt for each. Each must be
// acked, nacked or renewed within the lease. Rows that cannot be read as a message become dead and are not
// returned.
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

// Ack marks a message as delivered. It fails with outbox.ErrLeaseLost if this claim no longer holds the row: log it
// and do nothing more, because another worker has the row. A lease that ran out is not lost until another worker
// takes the row.
func (m *Module) Ack(ctx context.Context, message ClaimedMessage) error {
	return m.settle(ctx, message, outbox.Outcome{Kind: outbox.Delivered})
}

// Nack records a failed attempt: the row waits for its next attempt, or is dead if this was the last one or the
// cause is marked with outbox.Terminal. It fails with outbox.ErrLeaseLost as Ack does.
func (m *Module) Nack(ctx context.Context, message ClaimedMessage, cause error) error {
	if cause == nil {
		return fmt.Errorf("outbox: event %s cannot be nacked without an error", message.ID)
	}
	return m.settle(ctx, message, outbox.FailedAttempt(message.Attempts, message.maxAttempts, cause, m.retry.Delay(message.Attempts)))
}

// Renew extends a message by another lease of its claim's length. It fails with outbox.ErrLeaseLost as Ack does.
func (m *Module) Renew(ctx context.Context, message ClaimedMessage) error {
	if err := m.owns(message); err != nil {
		return err
	}
	if err := message.claim.Renew(ctx); err != nil {
		return fmt.Errorf("outbox: event %s: %w", message.ID, err)
	}
	return nil
}

// Release gives a message back as if it had not been claimed, for a worker that stops before it has tried. It fails
// with outbox.ErrLeaseLost as Ack does.
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

// owns refuses messages that ClaimBatch did not claim, and messages of another namespace.
func (m *Module) owns(message ClaimedMessage) error {
	switch {
	case message.claim == nil:
		return fmt.Errorf("outbox: event %s was not claimed by ClaimBatch; what a dispatcher hands out it settles itself", message.ID)
	case m.config.Namespace != AllNamespaces && message.claim.Messages()[0].Namespace != m.config.Namespace:
		return fmt.Errorf("outbox: event %s is not of the module's namespace, %q", message.ID, m.config.Namespace)
	}
	return nil
}
