// Package outboxgorm emits events inside a GORM transaction.
package outboxgorm

import (
	"context"
	"errors"

	"gorm.io/gorm"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/emit"
)

// ErrNoTransaction is returned if the *gorm.DB is not a transaction: the event would be committed separately from
// the change it reports.
var ErrNoTransaction = errors.New("outbox: the *gorm.DB is not a transaction; use db.Transaction, db.Begin or InTx")

// ErrDryRun is returned if the *gorm.DB is a dry run: the event would be written without the change it reports.
var ErrDryRun = errors.New("outbox: the *gorm.DB is a dry run")

var errNoDB = errors.New("outbox: the *gorm.DB is nil, or was not made by gorm.Open")

// Emitter writes events to one target. It is safe for concurrent use.
type Emitter struct{ emitter *emit.Emitter }

// New returns an emitter for a target: the stream (pgstream.Stream), or a table that a layout describes
// (layouts.Layout).
func New(target outbox.Target, config outbox.EmitConfig) (*Emitter, error) {
	emitter, err := emit.New(target, config)
	if err != nil {
		return nil, err
	}
	return &Emitter{emitter}, nil
}

// Emit writes one event in the caller's transaction. It never commits: the event exists if and only if the caller's
// commit succeeds. A refused event (an *outbox.EventError) leaves the transaction usable. After any other error it
// must be rolled back, as after every failed statement.
func (e *Emitter) Emit(ctx context.Context, tx *gorm.DB, event outbox.Event) (outbox.Emitted, error) {
	conn, err := transaction(tx)
	if err != nil {
		return outbox.Emitted{}, err
	}
	return e.emitter.Emit(ctx, conn, event)
}

// EmitMany writes many events in one statement and returns one result per event. If one is refused, none is
// written.
func (e *Emitter) EmitMany(ctx context.Context, tx *gorm.DB, events []outbox.Event) ([]outbox.Emitted, error) {
	conn, err := transaction(tx)
	if err != nil {
		return nil, err
	}
	return e.emitter.EmitMany(ctx, conn, events)
}

// Nudge wakes the relay, as InTx does after its commit. Call it after you commit a transaction of your own; without
// it, the relay finds the events at its next poll.
func (e *Emitter) Nudge() { e.emitter.Nudge() }

// InTx runs work in a new transaction, commits it, and then wakes the relay in this process, if EmitConfig.Nudge is
// set. If work returns an error or panics, it rolls back.
func (e *Emitter) InTx(ctx context.Context, db *gorm.DB, work func(tx *gorm.DB) error) error {
	if unopened(db) {
		return errNoDB
	}
	if err := db.WithContext(ctx).Transaction(work); err != nil {
		return err
	}
	// Inside the caller's transaction, GORM made only a savepoint: nothing is committed yet.
	if _, nested := db.Statement.ConnPool.(gorm.TxCommitter); !nested {
		e.emitter.Nudge()
	}
	return nil
}

// transaction returns the connection of a *gorm.DB. GORM gives plain connections and transactions the same type, so
// it has to check which one it is.
func transaction(tx *gorm.DB) (emit.SQLConn, error) {
	if unopened(tx) {
		return emit.SQLConn{}, errNoDB
	}
	if tx.Error != nil {
		return emit.SQLConn{}, tx.Error
	}
	if tx.DryRun {
		return emit.SQLConn{}, ErrDryRun
	}
	if _, ok := tx.Statement.ConnPool.(gorm.TxCommitter); !ok {
		return emit.SQLConn{}, ErrNoTransaction
	}
	return emit.SQLConn{Tx: tx.Statement.ConnPool}, nil
}

// unopened reports whether GORM itself could not use it.
func unopened(db *gorm.DB) bool { return db == nil || db.Config == nil || db.Statement == nil }
