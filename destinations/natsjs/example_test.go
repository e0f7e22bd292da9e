package natsjs_test

import (
	"context"
	"fmt"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/natsjs"
	"github.com/packfinderz/outbox/destinations/natsjs/natstest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
	"github.com/packfinderz/outbox/outboxtest/testserver"
)

// A publisher from a URL, as outbox relay --to takes it. A program gives it to
// outbox.NewRelay.
func Example() {
	t := new(testserver.Example)
	defer t.Done()
	broker := natstest.New(t) // in a program: your NATS

	config, err := natsjs.ParseURL(broker.URL() + "?window=1000")
	if err != nil {
		fmt.Println(err)
		return
	}
	publisher, err := natsjs.New(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = publisher.Close() }()

	message := outbox.Message{Event: outbox.Event{Topic: publishertest.Topic, Type: "order_created", Payload: []byte(`{"order": 1}`)}}
	fmt.Println(publisher.Publish(context.Background(), []outbox.Message{message}))
	fmt.Println(publisher.Ping(context.Background()))
	// Output:
	// [<nil>]
	// <nil>
}

// A client of one's own reaches the same servers in the same way.
func ExampleConfig_ClientOptions() {
	t := new(testserver.Example)
	defer t.Done()
	broker := natstest.New(t) // in a program: your NATS

	config, err := natsjs.ParseURL(broker.URL())
	if err != nil {
		fmt.Println(err)
		return
	}
	options, err := config.ClientOptions()
	if err != nil {
		fmt.Println(err)
		return
	}
	options.Name = "orders report"
	conn, err := options.Connect()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Println(conn.IsConnected())
	// Output: true
}
