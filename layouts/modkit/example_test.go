package modkit_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/pgtest"
	"github.com/packfinderz/outbox/layouts/modkit"
	"github.com/packfinderz/outbox/outboxpgx"
)

// finaliseTurn is the business transaction: what the turn used and its event, or neither.
func finaliseTurn(ctx context.Context, tx pgx.Tx, emitter *outboxpgx.Emitter, tenant, turn, request uuid.UUID) error {
	if _, err := tx.Exec(ctx, `UPDATE turns SET tokens = 17 WHERE id = $1`, turn); err != nil {
		return err
	}
	_, err := emitter.Emit(ctx, tx, outbox.Event{
		Namespace: "mini-chat",
		Topic:     "usage",
		TenantID:  tenant,
		DedupeKey: fmt.Sprintf("%s/%s/%s", tenant, turn, request),
		Payload:   []byte(`{"tokens": 17}`),
	})
	return err
}

// newDispatcher hands the messages of one namespace to a function.
func newDispatcher(pool *pgxpool.Pool) (*outbox.Relay, error) {
	return modkit.NewDispatcher(pool, modkit.DispatcherConfig{
		Store:        modkit.StoreConfig{Namespace: "mini-chat", LeaseDuration: 30 * time.Second, MaxAttempts: 5},
		PollInterval: time.Second,
	}, func(_ context.Context, message modkit.ClaimedMessage) error {
		fmt.Println(message.Topic, string(message.Payload), "attempt", message.Attempt)
		return nil
	})
}

// A module runs a dispatcher for its own namespace, with a function that hands a message on.
func ExampleNewDispatcher() {
	ctx := context.Background()
	pool, done, err := exampleDatabase(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()

	dispatcher, err := newDispatcher(pool)
	if err != nil {
		fmt.Println(err)
		return
	}
	// A service runs it until shutdown, with dispatcher.Run(ctx); Drain ends when nothing is left.
	fmt.Println(dispatcher.Drain(ctx))
	// Output:
	// usage {"tokens": 17} attempt 1
	// <nil>
}

// A module that has a loop of its own claims, acks and nacks by itself.
func ExampleStore() {
	ctx := context.Background()
	pool, done, err := exampleDatabase(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()

	store, err := modkit.NewStore(pool, modkit.StoreConfig{Namespace: "mini-chat"})
	if err != nil {
		fmt.Println(err)
		return
	}
	messages, err := store.ClaimBatch(ctx, 10)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, message := range messages {
		fmt.Println(string(message.Payload))
		fmt.Println("ack:", store.Ack(ctx, message))
		// The row is no longer this claim's.
		fmt.Println("lease lost:", errors.Is(store.Ack(ctx, message), outbox.ErrLeaseLost))
	}
	// Output:
	// {"tokens": 17}
	// ack: <nil>
	// lease lost: true
}

// exampleDatabase has the table and one event in it.
func exampleDatabase(ctx context.Context) (*pgxpool.Pool, func(), error) {
	files, err := modkit.Migrations(modkit.Layout())
	if err != nil {
		return nil, nil, err
	}
	pool, done, err := pgtest.Example(`CREATE TABLE turns (id uuid PRIMARY KEY, tokens bigint)`, files)
	if err != nil {
		return nil, nil, err
	}
	emitter, err := outboxpgx.New(modkit.Layout(), nil)
	if err == nil {
		err = emitter.InTx(ctx, pool, func(tx pgx.Tx) error {
			return finaliseTurn(ctx, tx, emitter, uuid.New(), uuid.New(), uuid.New())
		})
	}
	if err != nil {
		done()
	}
	return pool, done, err
}
