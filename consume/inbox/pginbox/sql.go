package pginbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/consume/inbox"
)

// MarkSQL is Mark in a transaction of database/sql, with any PostgreSQL driver.
func (i *Inbox) MarkSQL(ctx context.Context, tx *sql.Tx, consumer string, event uuid.UUID) (first bool, err error) {
	if err := inbox.Check(consumer, event); err != nil {
		return false, err
	}
	var rows int64
	result, err := tx.ExecContext(ctx, i.mark, consumer, event.String())
	if err == nil {
		rows, err = result.RowsAffected()
	}
	return marked(rows, err, consumer, event)
}

// HandleSQL is Handle in a transaction of database/sql, with any PostgreSQL driver.
func (i *Inbox) HandleSQL(
	ctx context.Context, db *sql.DB, consumer string, event uuid.UUID, handler func(ctx context.Context, tx *sql.Tx) error,
) (ran bool, err error) {
	if err := inbox.Check(consumer, event); err != nil {
		return false, err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return false, fmt.Errorf("inbox: begin a transaction: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // as in Handle
	first, err := i.MarkSQL(ctx, tx, consumer, event)
	if err != nil || !first {
		return false, err
	}
	if err := handler(ctx, tx); err != nil {
		return true, err
	}
	if err := tx.Commit(); err != nil {
		if ended := ctx.Err(); ended != nil && errors.Is(err, sql.ErrTxDone) {
			err = ended // database/sql rolled back because of it, but does not say so
		}
		return true, fmt.Errorf("inbox: commit: %w", err)
	}
	return true, nil
}
