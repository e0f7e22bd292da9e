package rabbitmq_test

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/rabbitmq"
	"github.com/packfinderz/outbox/destinations/rabbitmq/rabbittest"
	"github.com/packfinderz/outbox/outboxtest/testserver"
)

// A relay is given such a publisher and calls it with what it has claimed.
func Example() {
	t := new(testserver.Example)
	defer t.Done()
	broker := rabbittest.New(t) // in a program: your RabbitMQ

	config, err := rabbitmq.ParseURL(broker.URL() + "?create=true")
	if err != nil {
		fmt.Println(err)
		return
	}
	publisher, err := rabbitmq.New(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = publisher.Close() }() // nothing is left in it

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	errs := publisher.Publish(ctx, []outbox.Message{{
		Event:     outbox.Event{ID: uuid.New(), Topic: "payments", Type: "order_created", Payload: []byte(`{"total": 42}`)},
		CreatedAt: time.Now(),
	}})
	fmt.Println(errs[0])
	for _, received := range broker.ReceivedIn(t, "payments") {
		fmt.Println(received.Attributes["event_type"], string(received.Payload))
	}
	// Output:
	// <nil>
	// order_created {"total": 42}
}
