package pginbox

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/consume/inbox"
)

// rollbackPatience limits a rollback, which outlives the caller's context: a cancelled rollback would cost the
// connection.
const rollbackPatience = 5 * time.Second

// Beginner starts transactions: a *pgxpool.Pool or a *pgx.Conn.
type Beginner interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

// Mark marks the event as handled by the consumer, in the caller's transaction, and reports whether it was unmarked
// before. If it was marked, just end the transaction. The mark exists if and only if the transaction commits; the
// effect belongs in the same transaction.
//
// After an error the transaction must be rolled back, as after every failed statement.
func (i *Inbox) Mark(ctx context.Context, tx pgx.Tx, consumer string, event uuid.UUID) (first bool, err error) {
	if err := inbox.Check(consumer, event); err != nil {
		return false, err
	}
	tag, err := tx.Exec(ctx, i.mark, consumer, event.String())
	return marked(tag.RowsAffected(), err, consumer, event)
}

// Handle runs the handler in a transaction that marks the event, unless the consumer has handled it before, and
// commits. It reports whether the handler ran.
//
//   - For a duplicate it returns false and no error: acknowledge it.
//   - If the handler fails or panics, it rolls everything back and passes the error or panic on.
//   - After any other error, too, have the event delivered again. If the commit failed, the effect may
//     have been committed; then the mark was, too, and the next delivery is a duplicate.
//
// The handler does its effect through tx and neither commits it nor rolls it back.
func (i *Inbox) Handle(
	ctx context.Context, db Beginner, consumer string, event uuid.UUID, handler func(ctx context.Context, tx pgx.Tx) error,
) (ran bool, err error) {
	if err := inbox.Check(consumer, event); err != nil {
		return false, err
	}
	tx, err := db.BeginTx(ctx, pgx.TxOptions{})
	if err != nil {
		return false, fmt.Errorf("inbox: begin a transaction: %w", err)
	}
	defer rollBack(ctx, tx)
	first, err := i.Mark(ctx, tx, consumer, event)
	if err != nil || !first {
		return false, err
	}
	if err := handler(ctx, tx); err != nil {
		return true, err
	}
	if err := tx.Commit(ctx); err != nil {
		return true, fmt.Errorf("inbox: commit: %w", err)
	}
	return true, nil
}

// rollBack is a no-op after a commit; after an error or a panic it frees the connection and its locks. Its own
// errors do not matter: such a connection is closed, which has the same effect.
func rollBack(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackPatience)
	defer cancel()
	_ = tx.Rollback(ctx)
}
