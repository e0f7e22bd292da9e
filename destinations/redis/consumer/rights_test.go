package consumer_test

import (
	"context"
	"testing"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/destinations/redis/consumer"
	"github.com/packfinderz/outbox/destinations/redis/redistest"
	"github.com/packfinderz/outbox/outboxtest/consumetest"
)

// TestRights has a user with the rights that docs/consuming-redis.md asks for, and no more.
func TestRights(t *testing.T) {
	t.Parallel()
	broker, messages, handled := redistest.New(t), keyed(10, 2), consumetest.NewRecord()
	send(t, broker, messages)
	url := broker.Grant(t, "~orders +xreadgroup +xack +xpending +xclaim +xrange +evalsha +eval +xgroup|delconsumer +xgroup|create")
	running := startAt(t, url, consumer.Config{Process: consume.Config{Handlers: consumetest.Handler(func(_ context.Context, m outbox.Message) error {
		handled.Add(m)
		if m.Attempt == 1 {
			return context.DeadlineExceeded
		}
		return nil
	})}})
	handled.Await(t, 20)
	awaitPending(t, broker, 0)
	running.Stop()
	if consumers := broker.Client().XInfoConsumers(t.Context(), "orders", testGroup).Val(); len(consumers) > 0 {
		t.Errorf("the consumer did not leave: %+v", consumers)
	}
}
