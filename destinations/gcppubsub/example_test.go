package gcppubsub_test

import (
	"context"
	"fmt"
	"time"

	apiv1 "cloud.google.com/go/pubsub/v2/apiv1"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"
	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/gcppubsub"
)

// Publish an event; a relay does this with what it claims. The server here is Google's own
// for tests; without endpoint and insecure it is the service.
func Example() {
	server := pstest.NewServer()
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

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	errs := publisher.Publish(ctx, []outbox.Message{{Event: outbox.Event{
		ID: uuid.New(), Topic: "orders", Type: "order_created", Key: "order/42", Payload: []byte(`{"total": 100}`),
	}}})
	fmt.Println("errors:", errs)
	for _, m := range server.Messages() {
		fmt.Println(m.Topic, m.OrderingKey, m.Attributes["event_type"], string(m.Data))
	}
	// Output:
	// errors: [<nil>]
	// projects/shop/topics/orders order/42 order_created {"total": 100}
}

// A client of one's own, here to make a topic, reaches the service as the publisher does.
func ExampleConfig_ClientOptions() {
	server := pstest.NewServer()
	defer func() { _ = server.Close() }()
	config, err := gcppubsub.ParseURL("gcppubsub://shop?insecure=true&endpoint=" + server.Addr)
	if err != nil {
		fmt.Println(err)
		return
	}
	options, err := config.ClientOptions()
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	client, err := apiv1.NewTopicAdminClient(ctx, options...)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = client.Close() }()
	topic, err := client.CreateTopic(ctx, &pubsubpb.Topic{Name: "projects/shop/topics/orders"})
	fmt.Println(topic.GetName(), err)
	// Output:
	// projects/shop/topics/orders <nil>
}
