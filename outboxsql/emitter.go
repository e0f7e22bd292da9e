// Package outboxsql emits events inside a database/sql transaction, with any
// PostgreSQL driver (pgx's stdlib, lib/pq).
package outboxsql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/emit"
)

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
func (e *Emitter) Emit(ctx context.Context, tx *sql.Tx, event outbox.Event) (outbox.Emitted, error) {
	return e.emitter.Emit(ctx, emit.SQLConn{Tx: tx}, event)
}

// EmitMany writes many events in one statement and returns one result per event. If one is refused, none is
// written.
func (e *Emitter) EmitMany(ctx context.Context, tx *sql.Tx, events []outbox.Event) ([]outbox.Emitted, error) {
	return e.emitter.EmitMany(ctx, emit.SQLConn{Tx: tx}, events)
}

// Nudge wakes the relay, as InTx does after its commit. Call it after you commit a transaction of your own; without
// it, the relay finds the events at its next poll.
func (e *Emitter) Nudge() { e.emitter.Nudge() }

// InTx runs work in a new transaction, commits it, and then wakes the relay in this process, if EmitConfig.Nudge is
// set. If work returns an error or panics, it rolls back.
func (e *Emitter) InTx(ctx context.Context, db *sql.DB, work func(tx *sql.Tx) error) (err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("outbox: begin a transaction: %w", err)
	}
	defer func() {
		// After a commit this is a no-op; after an error or a panic it frees the connection and its locks.
		if rollbackErr := tx.Rollback(); rollbackErr != nil && !errors.Is(rollbackErr, sql.ErrTxDone) {
			err = errors.Join(err, fmt.Errorf("outbox: roll back: %w", rollbackErr))
		}
	}()
	if err := work(tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("outbox: commit: %w", err)
	}
	e.emitter.Nudge()
	return nil
}
