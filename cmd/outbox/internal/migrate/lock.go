package migrate

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3/lock"

	"github.com/packfinderz/outbox/internal/migrations"
)

// locker lets one process migrate at a time, the library's Migrate included. It has its own connection.
type locker struct {
	config *pgx.ConnConfig
	tx     pgx.Tx
}

var _ lock.SessionLocker = (*locker)(nil)

func (l *locker) SessionLock(ctx context.Context, _ *sql.Conn) (err error) {
	l.tx, err = migrations.HoldLock(ctx, l.config)
	return err
}

func (l *locker) SessionUnlock(ctx context.Context, _ *sql.Conn) error {
	return migrations.FreeLock(ctx, l.tx)
}
