package consumer_test

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/destinations/handlers"
	"github.com/packfinderz/outbox/destinations/kafka"
	"github.com/packfinderz/outbox/destinations/kafka/consumer"
	"github.com/packfinderz/outbox/destinations/kafka/kafkatest"
)

// A consumer of the orders, with a handler for each event type. What cannot be handled is
// published to orders.dead.
func ExampleConsumer() {
	url, stop, err := kafkatest.Serve()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()
	config, err := kafka.ParseURL(url + "?create=true")
	if err != nil {
		fmt.Println(err)
		return
	}
	publisher, err := kafka.New(config) // of dead letters, and here of the event as well
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
	billing, err := consumer.New(consumer.Config{
		Broker: config, Group: "billing", Topics: []string{"orders"},
		Process: consume.Config{Handlers: set, Unknown: consume.IgnoreUnknown, DeadLetters: publisher, DeadLetterTopic: "orders.dead"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	message := outbox.Message{Event: outbox.Event{ID: uuid.New(), Topic: "orders", Type: "order_created", Payload: []byte(`{"total": 20}`)}}
	fmt.Println(publisher.Publish(ctx, []outbox.Message{message}))
	fmt.Println(billing.Run(ctx))
	// Output:
	// [<nil>]
	// an order of 20
	// <nil>
}
