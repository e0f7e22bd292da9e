package outboxpgx_test

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume/inbox/pginbox"
	"github.com/packfinderz/outbox/destinations/handlers"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts/modkit"
	"github.com/packfinderz/outbox/outboxpgx"
	"github.com/packfinderz/outbox/pgstream"
)

// placeOrder is the first example of the README: the order and its event, in one commit.
func placeOrder(ctx context.Context, pool *pgxpool.Pool, emitter *outboxpgx.Emitter) error {
	return emitter.InTx(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO orders (id, total) VALUES ($1, $2)`, 42, 1999); err != nil {
			return err
		}
		_, err := emitter.Emit(ctx, tx, outbox.Event{
			Type:    "order_placed",
			Topic:   "orders",
			Key:     "order/42",
			Payload: []byte(`{"order": 42, "total": 1999}`),
		})
		return err
	})
}

// run is the second: a service with its relay.
func run(ctx context.Context, pool *pgxpool.Pool, broker outbox.Publisher, serve func(*outboxpgx.Emitter)) error {
	store, err := pgstream.Open(ctx, pool, pgstream.Stream{}, pgstream.Config{})
	if err != nil {
		return err
	}
	defer store.Close()
	relay, err := outbox.NewRelay(outbox.RelayConfig{Store: store, Publisher: broker})
	if err != nil {
		return err
	}
	emitter, err := outboxpgx.New(pgstream.Stream{}, outbox.EmitConfig{Nudge: relay.Nudge})
	if err != nil {
		return err
	}
	go serve(emitter)
	return relay.Run(ctx)
}

// billing is the third: a consumer's handler, whose effect happens once however often its event is delivered. The fourth,
// which reads from a broker, is in destinations/natsjs/consumer.
func billing(pool *pgxpool.Pool, inbox *pginbox.Inbox) (*handlers.Publisher, error) {
	set, err := handlers.New(handlers.Config{})
	if err != nil {
		return nil, err
	}
	type order struct{ Order, Total int }
	err = handlers.Handle(set, "order_placed", "billing", func(ctx context.Context, o order, event outbox.Message) error {
		_, err := inbox.Handle(ctx, pool, "billing", event.ID, func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `INSERT INTO invoices (order_id, amount) VALUES ($1, $2)`, o.Order, o.Total)
			return err
		})
		return err
	})
	return set, err
}

// printer publishes to the screen, and tells that it did.
type printer struct{ published func() }

func (p printer) Publish(_ context.Context, messages []outbox.Message) []error {
	for i := range messages {
		fmt.Println(messages[i].Topic, messages[i].Type, messages[i].Key)
	}
	p.published()
	return make([]error, len(messages))
}

func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	pool, done, err := exampleDatabase()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()

	err = run(ctx, pool, printer{published: stop}, func(emitter *outboxpgx.Emitter) {
		if err := placeOrder(ctx, pool, emitter); err != nil {
			fmt.Println(err)
			stop()
		}
	})
	fmt.Println(err)
	// Output:
	// orders order_placed order/42
	// <nil>
}

// An event that is delivered twice makes one invoice.
func Example_consumer() {
	ctx := context.Background()
	pool, done, err := exampleDatabase()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()
	if err := pginbox.Migrate(ctx, pool, pginbox.Config{}); err != nil {
		fmt.Println(err)
		return
	}
	inbox, err := pginbox.New(pginbox.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	set, err := billing(pool, inbox)
	if err != nil {
		fmt.Println(err)
		return
	}

	event := outbox.Event{ID: uuid.New(), Type: "order_placed", Payload: []byte(`{"order": 42, "total": 1999}`)}
	for range 2 {
		fmt.Println(set.Publish(ctx, []outbox.Message{{Event: event}}))
	}
	var invoices, amount int
	err = pool.QueryRow(ctx, `SELECT count(*), sum(amount) FROM invoices`).Scan(&invoices, &amount)
	fmt.Println(invoices, amount, err)
	// Output:
	// [<nil>]
	// [<nil>]
	// 1 1999 <nil>
}

// Emitting the same dedupe key again is no error, and no second event.
func ExampleEmitter_Emit() {
	ctx := context.Background()
	pool, done, err := exampleDatabase()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()
	emitter, err := outboxpgx.New(modkit.Layout(), outbox.EmitConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	event := outbox.Event{Namespace: "shop", Topic: "orders", DedupeKey: "order-42", Payload: []byte(`{}`)}
	for range 2 {
		err := emitter.InTx(ctx, pool, func(tx pgx.Tx) error {
			emitted, err := emitter.Emit(ctx, tx, event)
			fmt.Println("already enqueued:", emitted.AlreadyEnqueued)
			return err
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// already enqueued: false
	// already enqueued: true
}

// Many events take one round trip. A refused one is found before anything is sent.
func ExampleEmitter_EmitMany() {
	ctx := context.Background()
	pool, done, err := exampleDatabase()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()
	emitter, err := outboxpgx.New(modkit.Layout(), outbox.EmitConfig{DefaultNamespace: "shop", DefaultTopic: "orders"})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = emitter.InTx(ctx, pool, func(tx pgx.Tx) error {
		_, err := emitter.EmitMany(ctx, tx, []outbox.Event{{Payload: []byte(`{"order": 1}`)}, {Payload: []byte(`{"order": `)}})
		fmt.Println(err)
		emitted, err := emitter.EmitMany(ctx, tx, []outbox.Event{{Payload: []byte(`{"order": 1}`)}, {Payload: []byte(`{"order": 2}`)}})
		fmt.Println(len(emitted), "emitted")
		return err
	})
	fmt.Println(err)
	// Output:
	// outbox: event 1: payload is not valid JSON
	// 2 emitted
	// <nil>
}

// exampleDatabase is a PostgreSQL with a shop's orders and invoices, a stream and the ModKit outbox table.
func exampleDatabase() (*pgxpool.Pool, func(), error) {
	stream, err := pgstream.Migrations(pgstream.Shape{})
	if err != nil {
		return nil, nil, err
	}
	table, err := modkit.Migrations(modkit.Layout())
	if err != nil {
		return nil, nil, err
	}
	return pgtest.Example(`
		CREATE TABLE orders (id bigint PRIMARY KEY, total int NOT NULL);
		CREATE TABLE invoices (order_id bigint NOT NULL, amount int NOT NULL)`, stream, table)
}
