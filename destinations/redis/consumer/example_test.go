package consumer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	goredis "github.com/redis/go-redis/v9"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/consume/inbox"
	"github.com/packfinderz/outbox/consume/inbox/redisinbox"
	"github.com/packfinderz/outbox/destinations/handlers"
	"github.com/packfinderz/outbox/destinations/redis"
	"github.com/packfinderz/outbox/destinations/redis/consumer"
	"github.com/packfinderz/outbox/destinations/redis/redistest"
	"github.com/packfinderz/outbox/outboxtest/testserver"
)

// A consumer with an inbox: the relay has published an event twice, and its effect happens once.
func Example() {
	t := new(testserver.Example)
	defer t.Done()
	broker := redistest.New(t) // in a program: your Redis

	config, err := redis.ParseURL(broker.URL() + "?create=true")
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
	event := outbox.Message{
		Event:     outbox.Event{ID: uuid.New(), Topic: "orders", Type: "order_created", Key: "order/7", Payload: []byte(`{"total": 42}`)},
		CreatedAt: time.Now(),
	}
	last := event
	last.ID, last.Type = uuid.New(), "day_closed" // of the same key: it comes last
	for _, err := range publisher.Publish(context.Background(), []outbox.Message{event, event, last}) {
		if err != nil {
			fmt.Println(err)
		}
	}

	if err := consumeOrders(config, publisher); err != nil {
		fmt.Println(err)
	}
	// Output:
	// an order of 42
	// that was all
}

// consumeOrders runs until the day is closed.
func consumeOrders(config redis.Config, deadLetters *redis.Publisher) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	options, err := config.ClientOptions()
	if err != nil {
		return err
	}
	client := goredis.NewUniversalClient(options)
	defer func() { _ = client.Close() }() // nothing is left in it
	in, err := redisinbox.New(redisinbox.Config{Client: client})
	if err != nil {
		return err
	}
	set, err := handlers.New(handlers.Config{})
	if err != nil {
		return err
	}
	err = set.Register("order_created", "billing", func(ctx context.Context, m outbox.Message) error {
		_, err := inbox.Handle(ctx, in, "billing", m.ID, func(context.Context) error {
			var order struct{ Total int }
			if err := json.Unmarshal(m.Payload, &order); err != nil {
				return outbox.Terminal(err) // it will never be better
			}
			fmt.Println("an order of", order.Total)
			return nil
		})
		return err
	})
	if err != nil {
		return err
	}
	err = set.Register("day_closed", "billing", func(context.Context, outbox.Message) error {
		fmt.Println("that was all")
		stop()
		return nil
	})
	if err != nil {
		return err
	}
	return runBilling(ctx, config, set, deadLetters)
}

// runBilling is an example of docs/consuming-redis.md: it consumes until ctx ends.
func runBilling(ctx context.Context, config redis.Config, set *handlers.Publisher, deadLetters outbox.Publisher) error {
	billing, err := consumer.New(consumer.Config{
		Broker: config, Topic: "orders", Group: "billing",
		Process: consume.Config{Handlers: set, Unknown: consume.IgnoreUnknown, DeadLetters: deadLetters, DeadLetterTopic: "orders.dead"},
	})
	if err != nil {
		return err
	}
	return billing.Run(ctx)
}
