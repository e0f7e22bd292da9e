//go:build unix

package chaos

// Transactions that stay open while all others come and go.

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
)

// bystander is a transaction that has an xid and an event, and is not committed yet.
type bystander struct {
	accounts *accounts
	conn     *pgxpool.Conn
	ids      []uuid.UUID
	name     string // of a prepared transaction
	ended    bool
}

// newBystander begins a transaction and emits in it.
func newBystander(ctx context.Context, a *accounts, key string) (*bystander, error) {
	conn, err := a.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	b := &bystander{accounts: a, conn: conn}
	tx, err := conn.Begin(ctx)
	if err == nil {
		b.ids, err = a.emitAll(ctx, tx, []outbox.Event{
			{Topic: "accounts", Type: "account_changed", Key: key, Payload: []byte(`{"version":1}`)},
			{Topic: "accounts", Type: "account_changed", Payload: []byte(`{}`)},
		})
	}
	if err != nil {
		conn.Release()
		return nil, fmt.Errorf("emit in a transaction that stays open: %w", err)
	}
	return b, nil
}

// prepare leaves the transaction to the server.
func (b *bystander) prepare(ctx context.Context, name string) error {
	b.name = name
	_, err := b.conn.Exec(ctx, `PREPARE TRANSACTION '`+name+`'`)
	return err
}

// end commits the transaction, or rolls it back. Once is enough.
func (b *bystander) end(ctx context.Context, commit bool) error {
	if b.ended {
		return nil
	}
	b.ended = true
	defer b.conn.Release()
	sql := "ROLLBACK"
	if commit {
		sql = "COMMIT"
	}
	if b.name != "" {
		sql += ` PREPARED '` + b.name + `'`
	}
	if _, err := b.conn.Exec(ctx, sql); err != nil {
		return fmt.Errorf("end a transaction that stayed open: %w", err)
	}
	if commit {
		b.accounts.commit(b.ids)
	} else {
		b.accounts.rollBack(len(b.ids))
	}
	return nil
}

// open are the transactions that stay open: one throughout, one that is prepared and committed later, one that is
// prepared and rolled back.
type open struct{ long, prepared, undone *bystander }

func (s *storm) bystanders(writers *accounts) (all open) {
	s.Helper()
	for key, transaction := range map[string]**bystander{"long": &all.long, "prepared": &all.prepared, "undone": &all.undone} {
		made, err := newBystander(s.Context(), writers, key)
		s.check(err)
		*transaction = made
		s.Cleanup(func() { _ = made.end(context.WithoutCancel(s.Context()), false) }) // for a test that ended before
	}
	s.check(all.prepared.prepare(s.Context(), "prepared"))
	s.check(all.undone.prepare(s.Context(), "undone"))
	return all
}
