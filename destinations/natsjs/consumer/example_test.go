package consumer_test

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/destinations/handlers"
	"github.com/packfinderz/outbox/destinations/natsjs"
	"github.com/packfinderz/outbox/destinations/natsjs/consumer"
	"github.com/packfinderz/outbox/destinations/natsjs/natstest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
	"github.com/packfinderz/outbox/outboxtest/testserver"
)

// consumeOrders is an example of the README: it consumes until ctx ends.
func consumeOrders(ctx context.Context, broker natsjs.Config, set *handlers.Publisher, dead outbox.Publisher) error {
	billing, err := consumer.New(consumer.Config{
		Broker: broker, Topics: []string{"orders"}, Durable: "billing",
		Process: consume.Config{
			Handlers: set, Unknown: consume.IgnoreUnknown,
			DeadLetters: dead, DeadLetterTopic: "orders.dead",
		},
	})
	if err != nil {
		return err
	}
	return billing.Run(ctx)
}

// A consumer of the orders, with a handler for each event type. What cannot be handled is
// published to orders.dead.
func Example() {
	t := new(testserver.Example)
	defer t.Done()
	broker := natstest.New(t) // in a program: your NATS

	config, err := natsjs.ParseURL(broker.URL() + "?create=true&stream=" + natstest.Stream)
	if err != nil {
		fmt.Println(err)
		return
	}
	publisher, err := natsjs.New(config) // of dead letters, and here of the event as well
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = publisher.Close() }()

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	set, err := handlers.New(handlers.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	type order struct{ Total int }
	err = handlers.Handle(set, "order_created", "billing", func(_ context.Context, o order, _ outbox.Message) error {
		fmt.Println("an order of", o.Total)
		cancel() // a program ends by a signal instead
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	message := outbox.Message{Event: outbox.Event{ID: uuid.New(), Topic: publishertest.Topic, Type: "order_created", Payload: []byte(`{"total": 20}`)}}
	fmt.Println(publisher.Publish(ctx, []outbox.Message{message}))
	fmt.Println(consumeOrders(ctx, config, set, publisher))
	// Output:
	// [<nil>]
	// an order of 20
	// <nil>
}
