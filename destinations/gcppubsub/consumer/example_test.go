package consumer_test

import (
	"context"
	"fmt"
	"time"

	"cloud.google.com/go/pubsub/v2/pstest"
	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/destinations/gcppubsub"
	"github.com/packfinderz/outbox/destinations/gcppubsub/consumer"
	"github.com/packfinderz/outbox/destinations/handlers"
)

// Invoice is a payload.
type Invoice struct {
	Total int `json:"total"`
}

// Consume events: what is handled is acknowledged, and what fails for good is a dead letter.
func ExampleConsumer() {
	server := pstest.NewServer() // Google's own for tests; without endpoint and insecure it is the service
	defer func() { _ = server.Close() }()
	config, err := gcppubsub.ParseURL("gcppubsub://shop?create=true&insecure=true&endpoint=" + server.Addr)
	if err != nil {
		fmt.Println(err)
		return
	}
	publisher, err := gcppubsub.New(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = publisher.Close() }()

	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
	defer stop()
	set, err := handlers.New(handlers.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = handlers.Handle(set, "invoice_due", "pay", func(_ context.Context, invoice Invoice, m outbox.Message) error {
		fmt.Println("pay", invoice.Total, "of", m.Key)
		stop() // one is enough here
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	billing, err := consumer.New(consumer.Config{
		Broker: config, Subscription: "billing", Topic: "invoices",
		Process: consume.Config{Handlers: set, Unknown: consume.IgnoreUnknown, DeadLetters: publisher, DeadLetterTopic: "invoices-dead"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	done := make(chan error)
	go func() { done <- billing.Run(ctx) }()

	// The subscription sees what is published once it is there. In a service a relay does this.
	for ctx.Err() == nil {
		publisher.Publish(ctx, []outbox.Message{{Event: outbox.Event{
			ID: uuid.New(), Topic: "invoices", Type: "invoice_due", Key: "invoice/7", Payload: []byte(`{"total": 20}`),
		}}})
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
	fmt.Println("ended:", <-done)
	// Output:
	// pay 20 of invoice/7
	// ended: <nil>
}
