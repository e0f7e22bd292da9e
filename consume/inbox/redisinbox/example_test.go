package redisinbox_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	goredis "github.com/redis/go-redis/v9"

	"github.com/packfinderz/outbox/consume/inbox"
	"github.com/packfinderz/outbox/consume/inbox/redisinbox"
	"github.com/packfinderz/outbox/destinations/redis/redistest"
	"github.com/packfinderz/outbox/outboxtest/testserver"
)

// mailInbox is an example of docs/consuming-redis.md.
func mailInbox(client *goredis.Client) (*redisinbox.Inbox, error) {
	return redisinbox.New(redisinbox.Config{Client: client, TTL: inbox.TTL{Done: 30 * 24 * time.Hour, Horizon: 8 * 24 * time.Hour}})
}

// An event is delivered three times. The first handler fails, the second one has its effect, and the
// third delivery is a duplicate.
func ExampleInbox() {
	t := new(testserver.Example)
	defer t.Done()
	in, err := mailInbox(redistest.New(t).Client()) // in a program: your client
	if err != nil {
		fmt.Println(err)
		return
	}

	event, failure := uuid.New(), errors.New("no route to the mail server")
	for range 3 {
		ran, err := inbox.Handle(context.Background(), in, "welcome-mail", event, func(context.Context) error {
			defer func() { failure = nil }()
			return failure
		})
		fmt.Println(ran, err)
	}
	// Output:
	// true no route to the mail server
	// true <nil>
	// false <nil>
}

// notifyOnce is an example of docs/consuming-redis.md: it marks the event before its effect.
func notifyOnce(ctx context.Context, in *redisinbox.Inbox, event uuid.UUID, notify func(context.Context) error) error {
	done, err := in.CheckAndMarkProcessed(ctx, "notifications", event, 720*time.Hour)
	if err != nil || done {
		return err // nil: a duplicate
	}
	if err := notify(ctx); err != nil {
		return errors.Join(err, in.Delete(context.WithoutCancel(ctx), "notifications", event))
	}
	return nil
}

func ExampleInbox_CheckAndMarkProcessed() {
	t := new(testserver.Example)
	defer t.Done()
	in, err := mailInbox(redistest.New(t).Client()) // in a program: your client
	if err != nil {
		fmt.Println(err)
		return
	}

	event := uuid.New()
	for _, outcome := range []error{errors.New("no route to the mail server"), nil, nil} {
		err := notifyOnce(context.Background(), in, event, func(context.Context) error {
			fmt.Println("notify")
			return outcome
		})
		fmt.Println(err)
	}
	// Output:
	// notify
	// no route to the mail server
	// notify
	// <nil>
	// <nil>
}
