package pgstore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox"
)

// beginLocked starts a claim's transaction.
func beginLocked(lease time.Duration) string {
	return fmt.Sprintf("BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = %d", lease.Milliseconds())
}

// claimLocked opens a transaction that lasts until the batch is settled: its row locks are
// all that keeps others away. The server ends it if this process stops (a lease without a
// word), so that nothing stays locked for ever.
func (s *Store) claimLocked(ctx context.Context, n int) (outbox.Batch, error) {
	tx, err := s.pool.BeginTx(ctx, pgx.TxOptions{BeginQuery: s.begin})
	if err != nil {
		return nil, fmt.Errorf("outbox: begin a claim: %w", err)
	}
	b := &batch{store: s, tx: tx}
	rows, err := s.claimDue(ctx, tx, n)
	if err == nil {
		err = b.fill(ctx, rows)
	}
	if err != nil {
		b.Abandon()
		return nil, err
	}
	if len(b.messages) == 0 && len(b.exhausted) > 0 {
		// Nothing to publish, so that nobody will settle: the dead letters are kept now.
		if err := tx.Commit(ctx); err != nil {
			b.Abandon()
			return nil, fmt.Errorf("outbox: move events with used-up attempts to dead: %w", err)
		}
	}
	return b, nil
}

// settleLocked writes the outcomes and commits. A row cannot be lost: it is locked. After
// an error the transaction is gone and everything is as before the claim.
func (b *batch) settleLocked(ctx context.Context, outcomes []outbox.Outcome) error {
	if _, err := b.write(ctx, outcomes); err != nil {
		return fmt.Errorf("%w: %w", outbox.ErrLeaseLost, err)
	}
	if err := b.tx.Commit(ctx); err != nil {
		return fmt.Errorf("%w: outbox: commit a settle in %s: %w", outbox.ErrLeaseLost, b.store.layout.Table, err)
	}
	return nil
}

// renewLocked shows the server that this process lives, and finds out whether the
// transaction does.
func (b *batch) renewLocked(ctx context.Context) error {
	if _, err := b.tx.Exec(ctx, `SELECT`); err != nil {
		if ctx.Err() == nil && isConnectionLost(err) {
			return fmt.Errorf("%w: %w", outbox.ErrLeaseLost, err)
		}
		return fmt.Errorf("outbox: keep a claim: %w", err)
	}
	return nil
}
