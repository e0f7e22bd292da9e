package handlers_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/handlers"
)

// Order is a payload.
type Order struct {
	Number int `json:"number"`
}

// Two handlers have an event. The one that fails is called again, and the other is not.
func Example() {
	set, err := handlers.New(handlers.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = handlers.Handle(set, "order_created", "ship", func(_ context.Context, order Order, _ outbox.Message) error {
		fmt.Println("ship order", order.Number)
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = set.Register("order_created", "mail", func(_ context.Context, message outbox.Message) error {
		if message.Attempt == 1 {
			return errors.New("the mail server is busy")
		}
		fmt.Println("mail about", string(message.Payload))
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	// In a service the set is the Publisher of an outbox.RelayConfig, and the relay does this.
	message := outbox.Message{Event: outbox.Event{ID: uuid.New(), Type: "order_created", Payload: []byte(`{"number": 42}`)}}
	for message.Attempt = 1; message.Attempt <= 2; message.Attempt++ {
		fmt.Println(set.Publish(context.Background(), []outbox.Message{message}))
	}
	// Output:
	// ship order 42
	// [handler mail: the mail server is busy]
	// mail about {"number": 42}
	// [<nil>]
}
