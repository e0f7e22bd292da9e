package migrate

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/pressly/goose/v3/lock"
)

// locker lets one process migrate at a time. The lock is a transaction's, on a connection of its own:
// behind a pooler a session's lock would stay with a session that is somebody else's next. It is the
// same lock as goose's own, which earlier versions of this program take.
type locker struct {
	db *sql.DB
	tx *sql.Tx
}

var _ lock.SessionLocker = (*locker)(nil)

// SessionLock waits for the lock.
func (l *locker) SessionLock(ctx context.Context, _ *sql.Conn) error {
	tx, err := l.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted}) // it must not keep a snapshot
	if err != nil {
		return fmt.Errorf("begin to lock: %w", err)
	}
	// Without a parameter it is a simple query, which leaves no portal, and so no snapshot, open:
	// CREATE INDEX CONCURRENTLY would wait for it.
	if _, err := tx.ExecContext(ctx, fmt.Sprintf(`SELECT pg_advisory_xact_lock(%d)`, lock.DefaultLockID)); err != nil {
		_ = tx.Rollback() // it says the same
		return fmt.Errorf("wait for another migration: %w", err)
	}
	l.tx = tx
	return nil
}

// SessionUnlock lets others migrate.
func (l *locker) SessionUnlock(context.Context, *sql.Conn) error {
	if err := l.tx.Commit(); err != nil {
		return fmt.Errorf("unlock: %w", err)
	}
	return nil
}
