package outboxgorm

import (
	"context"
	"database/sql"

	"gorm.io/gorm"
)

// Transaction wraps a GORM transaction for calls that take an *sql.Tx, such as modkit.Enqueue and
// outboxtest.RequireEmitted. Tx makes one.
type Transaction struct{ tx *gorm.DB }

// Tx wraps a GORM transaction. A call that uses it fails with ErrNoTransaction if the *gorm.DB is not a
// transaction, and with ErrDryRun if it is a dry run.
func Tx(tx *gorm.DB) Transaction { return Transaction{tx} }

// Err says why the transaction cannot be used; nil if it can.
func (t Transaction) Err() error {
	_, err := transaction(t.tx)
	return err
}

// ExecContext is that of *sql.Tx.
func (t Transaction) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	conn, err := transaction(t.tx)
	if err != nil {
		return nil, err
	}
	return conn.Tx.ExecContext(ctx, query, args...)
}

// QueryContext is that of *sql.Tx.
func (t Transaction) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	conn, err := transaction(t.tx)
	if err != nil {
		return nil, err
	}
	return conn.Tx.QueryContext(ctx, query, args...)
}
