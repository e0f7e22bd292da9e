package migrations

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// LockID is the advisory lock of everything that migrates: goose's own, which earlier versions of the program take.
const LockID = 4097083626

// lockPause is how long Lock waits before it looks again.
const lockPause = 50 * time.Millisecond

// Lock waits until nobody else migrates. The lock ends with the transaction: behind a pooler a session's lock would
// stay with a session that is somebody else's next. The transaction must be READ COMMITTED, so that it sees what others
// made before it got the lock.
//
// It asks again and again: who waits for the lock inside a statement has a snapshot, for whose end CREATE INDEX
// CONCURRENTLY waits, in the process that has the lock. So does a portal that is left open, hence the simple protocol.
func Lock(ctx context.Context, tx DB) error {
	for {
		var locked bool
		err := tx.QueryRow(ctx, fmt.Sprintf(`SELECT pg_try_advisory_xact_lock(%d)`, LockID), pgx.QueryExecModeSimpleProtocol).Scan(&locked)
		if err != nil {
			return fmt.Errorf("wait for another migration: %w", err)
		}
		if locked {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for another migration: %w", ctx.Err())
		case <-time.After(lockPause):
		}
	}
}

// HoldLock takes the lock on a connection of its own, until FreeLock.
func HoldLock(ctx context.Context, config *pgx.ConnConfig) (pgx.Tx, error) {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect to lock: %w", err)
	}
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}) // it must not keep a snapshot
	if err == nil {
		err = Lock(ctx, tx)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
	}
	return tx, nil
}

// FreeLock lets others migrate, even when the context has ended.
func FreeLock(ctx context.Context, tx pgx.Tx) error {
	ctx = context.WithoutCancel(ctx)
	// A pooler drops a session that is closed inside a transaction.
	if err := errors.Join(tx.Rollback(ctx), tx.Conn().Close(ctx)); err != nil {
		return fmt.Errorf("unlock: %w", err)
	}
	return nil
}
