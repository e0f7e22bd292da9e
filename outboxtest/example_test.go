package outboxtest_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/outboxpgx"
	"github.com/packfinderz/outbox/outboxtest"
	"github.com/packfinderz/outbox/outboxtest/testdb"
	"github.com/packfinderz/outbox/outboxtest/testserver"
	"github.com/packfinderz/outbox/pgstream"
)

// pay is the code under test: it emits order.paid in the caller's transaction.
func pay(ctx context.Context, tx pgx.Tx, order, amount int) error {
	emitter, err := outboxpgx.New(pgstream.Stream{}, outbox.EmitConfig{DefaultTopic: "orders"})
	if err != nil {
		return err
	}
	_, err = emitter.Emit(ctx, tx, outbox.Event{
		Type: "order.paid", Key: fmt.Sprintf("order/%d", order), Payload: fmt.Appendf(nil, `{"order": %d, "amount": %d}`, order, amount),
	})
	return err
}

// A transaction that is never committed is enough to test what a function emits.
func ExampleRequireEmitted() {
	t := new(testserver.Example) // in a test: the *testing.T
	defer t.Done()
	pool := testdb.Pool(t)
	if err := pgstream.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()

	if err := pay(t.Context(), tx, 42, 1999); err != nil {
		t.Fatal(err)
	}

	events := outboxtest.RequireEmitted(t, tx, pgstream.Stream{},
		outbox.Event{Type: "order.paid", Key: "order/42", Payload: []byte(`{"amount": 1999}`)})
	outboxtest.RequireNotEmitted(t, tx, pgstream.Stream{}, outbox.Event{Type: "order.cancelled"})
	fmt.Printf("%s\n", events[0].Payload)
	// Output: {"order": 42, "amount": 1999}
}

// What is committed can be delivered, to a broker in memory.
func ExampleDrain() {
	t := new(testserver.Example) // in a test: the *testing.T
	defer t.Done()
	pool := testdb.Pool(t)
	if err := pgstream.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return pay(t.Context(), tx, 42, 1999) })
	if err != nil {
		t.Fatal(err)
	}

	for _, message := range outboxtest.Drain(t, pool, pgstream.Stream{}, &outboxtest.Broker{}) {
		fmt.Printf("%s: %s %s\n", message.Topic, message.Type, message.Payload)
	}
	// Output: orders: order.paid {"order": 42, "amount": 1999}
}
