package outboxpgx_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/outboxpgx"
	"github.com/packfinderz/outbox/pgstream"
)

// On the stream, the events of an aggregate are published in the order of their commits.
// Other languages emit to it with SQL.
func ExampleEmitter_stream() {
	pool, done, err := exampleDatabase()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()

	ctx := context.Background()
	emitter, err := outboxpgx.New(pgstream.Stream{}, outbox.EmitConfig{DefaultTopic: "orders"})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO orders (id, total) VALUES ($1, $2)`, 42, 1999); err != nil {
			return err
		}
		_, err := emitter.Emit(ctx, tx, outbox.Event{
			Type: "order_placed", AggregateType: "order", AggregateID: "42",
			Payload: []byte(`{"order": 42, "total": 1999}`), ContentType: "application/json",
		})
		return err
	})
	fmt.Println(err)

	_, err = pool.Exec(ctx, `SELECT outbox_emit('order_paid', '{"order": 42}', p_topic => 'orders', p_key => 'order/42')`)
	fmt.Println(err)

	rows, err := pool.Query(ctx, `SELECT key || ' ' || type FROM outbox_stream ORDER BY seq`)
	if err != nil {
		fmt.Println(err)
		return
	}
	events, err := pgx.CollectRows(rows, pgx.RowTo[string])
	fmt.Println(events, err)
	// Output:
	// <nil>
	// <nil>
	// [order/42 order_placed order/42 order_paid] <nil>
}
