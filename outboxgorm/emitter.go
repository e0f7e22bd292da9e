// Package outboxgorm emits events inside a GORM transaction.
package outboxgorm

import (
	"context"
	"errors"

	"gorm.io/gorm"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/emit"
)

// ErrNoTransaction is returned when the *gorm.DB is not a transaction: the event would
// be committed by itself, apart from the change it tells of.
var ErrNoTransaction = errors.New("outbox: the *gorm.DB is not a transaction; use db.Transaction, db.Begin or InTx")

// ErrDryRun is returned in a session that writes nothing: the event would be written all the same, without the change it
// tells of.
var ErrDryRun = errors.New("outbox: the *gorm.DB is a dry run")

var errNoDB = errors.New("outbox: the *gorm.DB is nil, or was not made by gorm.Open")

// Emitter writes events to one target. It is safe for concurrent use.
type Emitter struct{ emitter *emit.Emitter }

// New makes an emitter for a target: the stream (pgstream.Stream), or a table that a layout describes (layouts.Layout).
func New(target outbox.Target, config outbox.EmitConfig) (*Emitter, error) {
	emitter, err := emit.New(target, config)
	if err != nil {
		return nil, err
	}
	return &Emitter{emitter}, nil
}

// Emit writes one event in the caller's transaction. It never commits: the event
// exists if and only if the caller's commit succeeds. A refused event (an
// *outbox.EventError) leaves the transaction usable; after any other error it has to be
// rolled back, as after every failed statement.
func (e *Emitter) Emit(ctx context.Context, tx *gorm.DB, event outbox.Event) (outbox.Emitted, error) {
	conn, err := transaction(tx)
	if err != nil {
		return outbox.Emitted{}, err
	}
	return e.emitter.Emit(ctx, conn, event)
}

// EmitMany writes many events in one statement, and says for each what became of it.
// If one is refused, none is written.
func (e *Emitter) EmitMany(ctx context.Context, tx *gorm.DB, events []outbox.Event) ([]outbox.Emitted, error) {
	conn, err := transaction(tx)
	if err != nil {
		return nil, err
	}
	return e.emitter.EmitMany(ctx, conn, events)
}

// Nudge wakes the relay, as InTx does after its commit. Call it after the commit of a transaction of your own; without it
// the relay finds the events at its next look.
func (e *Emitter) Nudge() { e.emitter.Nudge() }

// InTx runs work in a transaction of its own, commits it, and then wakes the relay in
// this process, if EmitConfig.Nudge is set. An error or a panic of work rolls back.
func (e *Emitter) InTx(ctx context.Context, db *gorm.DB, work func(tx *gorm.DB) error) error {
	if unopened(db) {
		return errNoDB
	}
	if err := db.WithContext(ctx).Transaction(work); err != nil {
		return err
	}
	// Inside a transaction of the caller's, GORM made a savepoint: nothing is committed yet.
	if _, nested := db.Statement.ConnPool.(gorm.TxCommitter); !nested {
		e.emitter.Nudge()
	}
	return nil
}

// transaction takes the connection out of a *gorm.DB. GORM gives plain connections and
// transactions the same type, so which it is has to be looked up.
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

// unopened is whether GORM itself could not use it.
func unopened(db *gorm.DB) bool { return db == nil || db.Config == nil || db.Statement == nil }
