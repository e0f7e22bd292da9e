// Package outboxpgx emits events inside a pgx transaction.
package outboxpgx

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/emit"
)

// Beginner starts transactions: a *pgxpool.Pool or a *pgx.Conn.
type Beginner interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

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
func (e *Emitter) Emit(ctx context.Context, tx pgx.Tx, event outbox.Event) (outbox.Emitted, error) {
	return e.emitter.Emit(ctx, emit.PGXConn{Tx: tx}, event)
}

// EmitMany writes many events in one statement and returns one result per event. If one is refused, none is
// written.
func (e *Emitter) EmitMany(ctx context.Context, tx pgx.Tx, events []outbox.Event) ([]outbox.Emitted, error) {
	return e.emitter.EmitMany(ctx, emit.PGXConn{Tx: tx}, events)
}

// Nudge wakes the relay, as InTx does after its commit. Call it after you commit a transaction of your own; without
// it, the relay finds the events at its next poll.
func (e *Emitter) Nudge() { e.emitter.Nudge() }

// InTx runs work in a new transaction, commits it, and then wakes the relay in this process, if EmitConfig.Nudge is
// set. If work returns an error or panics, it rolls back.
func (e *Emitter) InTx(ctx context.Context, db Beginner, work func(tx pgx.Tx) error) error {
	if err := pgx.BeginTxFunc(ctx, db, pgx.TxOptions{}, work); err != nil {
		return err
	}
	e.emitter.Nudge()
	return nil
}
