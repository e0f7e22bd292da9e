package kafka_test

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/kafka"
	"github.com/packfinderz/outbox/destinations/kafka/kafkatest"
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

// A program can make sure of its topics when it starts, and make those that are not there.
func ExamplePublisher_CheckTopics() {
	url, stop, err := kafkatest.Serve()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()
	for _, options := range []string{"", "?create=true"} {
		config, err := kafka.ParseURL(url + options)
		if err != nil {
			fmt.Println(err)
			return
		}
		publisher, err := kafka.New(config)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("they are there:", publisher.CheckTopics(context.Background(), "invoices", "orders") == nil)
		_ = publisher.Close()
	}
	// Output:
	// they are there: false
	// they are there: true
}

// A client of one's own reaches the cluster as the publisher does.
func ExampleConfig_ClientOptions() {
	url, stop, err := kafkatest.Serve()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()
	config, err := kafka.ParseURL(url)
	if err != nil {
		fmt.Println(err)
		return
	}
	options, err := config.ClientOptions()
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := kgo.NewClient(append(options, kgo.ConsumeTopics("orders"))...)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	fmt.Println(client.Ping(context.Background()))
	// Output:
	// <nil>
}
