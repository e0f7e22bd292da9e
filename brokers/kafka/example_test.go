package kafka_test

import (
	"context"
	"fmt"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/brokers/kafka"
	"github.com/packfinderz/outbox/brokers/kafka/kafkatest"
)

// A publisher from a URL, as outbox relay --to takes it. A program gives it to
// outbox.NewRelay.
func Example() {
	url, stop, err := kafkatest.Serve()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()
	config, err := kafka.ParseURL(url + "?create=true&compression=zstd")
	if err != nil {
		fmt.Println(err)
		return
	}
	publisher, err := kafka.New(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = publisher.Close() }()

	message := outbox.Message{Event: outbox.Event{Topic: "invoices", Type: "invoice_sent", Key: "invoice/7", Payload: []byte(`{"invoice": 7}`)}}
	fmt.Println(publisher.Publish(context.Background(), []outbox.Message{message}))
	fmt.Println(publisher.Ping(context.Background()))
	// Output:
	// [<nil>]
	// <nil>
}
