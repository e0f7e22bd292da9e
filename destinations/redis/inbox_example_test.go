package redis_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/consume/inbox"
	"github.com/packfinderz/outbox/destinations/redis"
	"github.com/packfinderz/outbox/destinations/redis/redistest"
	"github.com/packfinderz/outbox/outboxtest/testserver"
)

// mailInbox is an example of docs/consuming-redis.md.
func mailInbox(url string) (*redis.Inbox, error) {
	config, err := redis.ParseURL(url) // redis://localhost:6379
	if err != nil {
		return nil, err
	}
	return redis.NewInbox(redis.InboxConfig{Config: config, TTL: inbox.TTL{Done: 30 * 24 * time.Hour, Horizon: 8 * 24 * time.Hour}})
}

// An event is delivered three times. The first handler fails, the second one has its effect, and the
// third delivery is a duplicate.
func ExampleInbox() {
	t := new(testserver.Example)
	defer t.Done()
	in, err := mailInbox(redistest.New(t).URL()) // in a program: your Redis
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = in.Close() }() // nothing is left in it

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
func notifyOnce(ctx context.Context, in *redis.Inbox, event uuid.UUID, notify func(context.Context) error) error {
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
	in, err := mailInbox(redistest.New(t).URL()) // in a program: your Redis
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = in.Close() }() // nothing is left in it

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
