package modkit

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/emit"
)

// ErrNoTransaction is returned for a value that is not an open transaction: the message would be committed
// separately from the change it reports.
var ErrNoTransaction = errors.New("outbox: enqueue needs an open transaction: a pgx.Tx, an *sql.Tx, or outboxgorm.Tx of a *gorm.DB")

// Tx is an open transaction: a pgx.Tx, an *sql.Tx of any PostgreSQL driver, or outboxgorm.Tx of a *gorm.DB. These
// types have no method in common, so anything else, such as a pool, is refused at the call, with ErrNoTransaction.
type Tx any

// Enqueue writes messages into the contract's table, in the caller's transaction, and returns one Enqueued for
// each, in order. It never commits: the messages exist if and only if the caller's commit succeeds.
//
// An existing dedupe key is no error: nothing is written, and Enqueued has the id of the earlier row. If a message
// is refused (an *outbox.EventError), none is written and the transaction stays usable. After any other error it
// must be rolled back, as after every failed statement.
func Enqueue(ctx context.Context, tx Tx, messages ...Message) ([]Enqueued, error) {
	emitter, err := contract()
	if err != nil {
		return nil, err
	}
	return enqueue(ctx, emitter, tx, messages)
}

// contract emits to the contract's table. It is compiled once, because it is the same for everybody.
var contract = sync.OnceValues(func() (*emit.Emitter, error) { return emit.New(Layout(), outbox.EmitConfig{}) })

func enqueue(ctx context.Context, emitter *emit.Emitter, tx Tx, messages []Message) ([]Enqueued, error) {
	conn, err := connOf(tx)
	if err != nil {
		return nil, err
	}
	events := make([]outbox.Event, len(messages))
	for i, m := range messages {
		if m.Namespace == AllNamespaces {
			return nil, &outbox.EventError{Index: i, Field: "namespace", Problem: "stands for all namespaces; a message has one of its own"}
		}
		events[i] = outbox.Event{Namespace: m.Namespace, Topic: m.Topic, TenantID: m.TenantID, DedupeKey: m.DedupeKey, Payload: m.Payload}
	}
	if len(events) != 1 {
		return emitter.EmitMany(ctx, conn, events)
	}
	enqueued, err := emitter.Emit(ctx, conn, events[0])
	if err != nil {
		return nil, err
	}
	return []Enqueued{enqueued}, nil
}

// sqlTx is an *sql.Tx, or a type that embeds one. A pool of database/sql has no Commit.
type sqlTx interface {
	emit.SQLTx
	Commit() error
}

func connOf(tx Tx) (emit.Conn, error) {
	switch tx := tx.(type) {
	case pgx.Tx:
		return emit.PGXConn{Tx: tx}, nil
	case sqlTx:
		return emit.SQLConn{Tx: tx}, nil
	case emit.CheckedTx:
		return emit.SQLConn{Tx: tx}, tx.Err()
	}
	return nil, fmt.Errorf("%w (it is a %T)", ErrNoTransaction, tx)
}
