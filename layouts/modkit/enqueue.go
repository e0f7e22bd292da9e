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

// ErrNoTransaction is returned for what is no open transaction: the message would be committed by
// itself, apart from the change it tells of.
var ErrNoTransaction = errors.New("outbox: enqueue needs an open transaction: a pgx.Tx, an *sql.Tx, or outboxgorm.Tx of a *gorm.DB")

// Tx is an open transaction: a pgx.Tx, an *sql.Tx of any PostgreSQL driver, or what outboxgorm.Tx
// makes of a *gorm.DB. These have no method in common, so that anything else, such as a pool, is
// refused with ErrNoTransaction when it is used.
type Tx any

// Enqueue writes messages in the caller's transaction, into the contract's table, and answers with
// one Enqueued for each, in their order. It never commits: the messages exist if and only if the
// caller's commit succeeds.
//
// A dedupe key that is there already is no error: the answer has the id of the row that was there
// first, and nothing is written. A message that is refused (an *outbox.EventError) leaves the
// transaction as it was, and none of the others is written; after any other error it has to be
// rolled back, as after every failed statement.
func Enqueue(ctx context.Context, tx Tx, messages ...Message) ([]Enqueued, error) {
	emitter, err := contract()
	if err != nil {
		return nil, err
	}
	return enqueue(ctx, emitter, tx, messages)
}

// contract is the contract's table, compiled once: it is the same for everybody.
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

// sqlTx is an *sql.Tx, or what embeds one. A pool of database/sql has no Commit.
type sqlTx interface {
	emit.SQLTx
	Commit() error
}

// connOf is how statements are run in a transaction.
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
