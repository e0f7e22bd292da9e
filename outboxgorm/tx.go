package outboxgorm

import (
	"context"
	"database/sql"

	"gorm.io/gorm"
)

// Transaction is a GORM transaction for calls that take an *sql.Tx, such as modkit.Enqueue and outboxtest.RequireEmitted. Tx
// makes one.
type Transaction struct{ tx *gorm.DB }

// Tx makes a Transaction. A *gorm.DB that is no transaction is refused when it is used, with ErrNoTransaction, and so is a
// dry run, with ErrDryRun.
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
