package redis_test

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	goredis "github.com/redis/go-redis/v9"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/redis"
	"github.com/packfinderz/outbox/destinations/redis/redistest"
	"github.com/packfinderz/outbox/outboxtest/testserver"
)

// A relay is given such a publisher and calls it with what it has claimed.
func Example() {
	t := new(testserver.Example)
	defer t.Done()
	broker := redistest.New(t) // in a program: your Redis

	config, err := redis.ParseURL(broker.URL() + "?create=true&prefix=shop:")
	if err != nil {
		fmt.Println(err)
		return
	}
	publisher, err := redis.New(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = publisher.Close() }() // nothing is left in it

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	errs := publisher.Publish(ctx, []outbox.Message{{
		Event:     outbox.Event{ID: uuid.New(), Topic: "orders", Type: "order_created", Payload: []byte(`{"total": 42}`)},
		CreatedAt: time.Now(),
	}})
	fmt.Println(errs[0])
	for _, received := range broker.ReceivedIn(t, "shop:orders") {
		fmt.Println(received.Attributes["event_type"], string(received.Payload))
	}
	// Output:
	// <nil>
	// order_created {"total": 42}
}

// A client of one's own reaches the same Redis in the same way.
func ExampleConfig_ClientOptions() {
	t := new(testserver.Example)
	defer t.Done()
	broker := redistest.New(t) // in a program: your Redis

	config, err := redis.ParseURL(broker.URL())
	if err != nil {
		fmt.Println(err)
		return
	}
	options, err := config.ClientOptions()
	if err != nil {
		fmt.Println(err)
		return
	}
	client := goredis.NewUniversalClient(options)
	defer func() { _ = client.Close() }() // nothing is left in it
	fmt.Println(client.XLen(context.Background(), "orders").Result())
	// Output: 0 <nil>
}
