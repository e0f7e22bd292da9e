package outboxgorm

import (
	"gorm.io/gorm"

	"github.com/packfinderz/outbox/internal/emit"
)

// Transaction is a GORM transaction as the library takes it, for calls such as modkit.Enqueue. Tx
// makes one.
type Transaction struct{ tx *gorm.DB }

// Tx is a GORM transaction as the library takes it. A *gorm.DB that is none is refused when it is
// used, with ErrNoTransaction, and so is a dry run, with ErrDryRun.
func Tx(tx *gorm.DB) Transaction { return Transaction{tx} }

// Conn is for the library's own use.
func (t Transaction) Conn() (emit.Conn, error) {
	conn, err := transaction(t.tx)
	if err != nil {
		return nil, err
	}
	return conn, nil
}
