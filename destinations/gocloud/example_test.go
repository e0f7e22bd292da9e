package gocloud_test

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"gocloud.dev/pubsub"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/gocloud"
)

// Publish an event; a relay does this with what it claims. The topic here is in memory.
func Example() {
	config, err := gocloud.ParseURL("mem://example/{topic}")
	if err != nil {
		fmt.Println(err)
		return
	}
	publisher, err := gocloud.New(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = publisher.Close() }()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if _, err := pubsub.OpenTopic(ctx, "mem://example/orders"); err != nil {
		fmt.Println(err)
		return
	}
	subscription, err := pubsub.OpenSubscription(ctx, "mem://example/orders")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = subscription.Shutdown(ctx) }()

	errs := publisher.Publish(ctx, []outbox.Message{{Event: outbox.Event{
		ID: uuid.New(), Topic: "orders", Type: "order_created", Key: "order/42", Payload: []byte(`{"total": 100}`),
	}}})
	fmt.Println("errors:", errs)
	message, err := subscription.Receive(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	message.Ack()
	fmt.Println(message.Metadata["event_type"], string(message.Body))
	// Output:
	// errors: [<nil>]
	// order_created {"total": 100}
}
