package natsjs_test

import (
	"context"
	"fmt"
	"os"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/brokers/natsjs"
	"github.com/packfinderz/outbox/brokers/natsjs/natstest"
	"github.com/packfinderz/outbox/publishertest"
)

// A publisher from a URL, as outbox relay --to takes it. A program gives it to
// outbox.NewRelay.
func Example() {
	server, stop, err := exampleServer()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()
	config, err := natsjs.ParseURL(server + "?window=1000")
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

// exampleServer is a server with a stream for orders.
func exampleServer() (url string, stop func(), err error) {
	folder, err := os.MkdirTemp("", "outbox-nats-")
	if err != nil {
		return "", nil, err
	}
	broker, kill, err := natstest.Serve(folder)
	if err != nil {
		return "", nil, err
	}
	return broker.URL(), func() {
		_ = kill()               // it is only an example
		_ = os.RemoveAll(folder) // likewise
	}, nil
}
