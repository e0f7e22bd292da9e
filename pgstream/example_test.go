package pgstream_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/pgstream"
)

// printer publishes to the screen. It never fails, so that it keeps order.
type printer struct{}

func (printer) Publish(_ context.Context, messages []outbox.Message) []error {
	for i := range messages {
		fmt.Printf("%s %s %s\n", messages[i].Key, messages[i].Type, messages[i].Payload)
	}
	return make([]error, len(messages))
}

func (printer) KeepsOrder() bool { return true }

// exampleStream is a database with a stream and three events of one order in it.
func exampleStream() (*pgxpool.Pool, func(), error) {
	files, err := pgstream.Migrations(pgstream.Shape{})
	if err != nil {
		return nil, nil, err
	}
	return pgtest.Example(`
		SELECT outbox_emit('order_placed', '{"total": 1999}', 'orders', p_key => 'order/42');
		SELECT outbox_emit('order_paid', '{}', 'orders', p_key => 'order/42');
		SELECT outbox_emit('order_shipped', '{}', 'orders', p_key => 'order/42')`, files)
}

// deliver relays what a subscription has not had yet.
func deliver(ctx context.Context, pool *pgxpool.Pool, subscription string) error {
	store, err := pgstream.Open(ctx, pool, pgstream.Stream{}, pgstream.Config{Subscription: subscription})
	if err != nil {
		return err
	}
	defer store.Close()
	relay, err := outbox.NewRelay(outbox.RelayConfig{Store: store, Publisher: printer{}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	return relay.Drain(ctx)
}

// A relay on the stream delivers the events of a key in the order of their commits.
func Example() {
	ctx := context.Background()
	pool, done, err := exampleStream()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()

	fmt.Println(deliver(ctx, pool, pgstream.DefaultSubscription))
	// Output:
	// order/42 order_placed {"total": 1999}
	// order/42 order_paid {}
	// order/42 order_shipped {}
	// <nil>
}

// runService is an example of docs/relay.md: a relay beside the producers of the same process.
func runService(ctx context.Context, pool *pgxpool.Pool, broker outbox.Publisher, serve func(context.Context) error) error {
	store, err := pgstream.Open(ctx, pool, pgstream.Stream{}, pgstream.Config{})
	if err != nil {
		return err
	}
	defer store.Close()
	relay, err := outbox.NewRelay(outbox.RelayConfig{Store: store, Publisher: broker, Listen: true})
	if err != nil {
		return err
	}
	running := context.WithoutCancel(ctx) // the relay outlives the producers
	if err := relay.Start(running); err != nil {
		return err
	}
	err = serve(ctx) // until ctx ends, and no producer is left
	return errors.Join(err, relay.Stop(running))
}

// counter is a printer that tells of every event.
type counter struct {
	printer
	published chan struct{}
}

func (c counter) Publish(ctx context.Context, messages []outbox.Message) []error {
	errs := c.printer.Publish(ctx, messages)
	for range messages {
		c.published <- struct{}{}
	}
	return errs
}

// A service stops its producers first, then its relay, and closes the store last.
func Example_service() {
	pool, done, err := exampleStream()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()

	broker := counter{published: make(chan struct{}, 3)}
	fmt.Println(runService(context.Background(), pool, broker, func(context.Context) error {
		for range cap(broker.published) {
			<-broker.published
		}
		return nil
	}))
	// Output:
	// order/42 order_placed {"total": 1999}
	// order/42 order_paid {}
	// order/42 order_shipped {}
	// <nil>
}

// Another subscription reads the same log with cursors of its own; this one only payments.
func ExampleStream_CreateSubscription() {
	ctx := context.Background()
	pool, done, err := exampleStream()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()

	billing := pgstream.Subscription{Name: "billing", Filter: pgstream.Filter{Types: []string{"order_paid"}}}
	if err := (pgstream.Stream{}).CreateSubscription(ctx, pool, billing, pgstream.StartOldest); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(deliver(ctx, pool, "billing"))
	// Output:
	// order/42 order_paid {}
	// <nil>
}

// A subscription is altered while relays run; here it takes only the payments of what comes.
func ExampleStream_AlterSubscription() {
	ctx := context.Background()
	pool, done, err := exampleStream()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()

	altered, err := pgstream.Stream{}.AlterSubscription(ctx, pool, pgstream.DefaultSubscription, func(sub *pgstream.Subscription) {
		sub.Filter.Types = []string{"order_paid"}
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(altered.Filter.Types)
	fmt.Println(deliver(ctx, pool, pgstream.DefaultSubscription))
	// Output:
	// [order_paid]
	// order/42 order_paid {}
	// <nil>
}

// Delivered events are published again, in order, without touching the cursors.
func ExampleStream_Replay() {
	ctx := context.Background()
	pool, done, err := exampleStream()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()
	if err := deliver(ctx, pool, pgstream.DefaultSubscription); err != nil {
		fmt.Println(err)
		return
	}

	fmt.Println(pgstream.Stream{}.Replay(ctx, pool, pgstream.Replay{Key: "order/42"}))
	fmt.Println(deliver(ctx, pool, pgstream.DefaultSubscription))
	// Output:
	// order/42 order_placed {"total": 1999}
	// order/42 order_paid {}
	// order/42 order_shipped {}
	// 3 <nil>
	// order/42 order_placed {"total": 1999}
	// order/42 order_paid {}
	// order/42 order_shipped {}
	// <nil>
}
