package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume/inbox/redisinbox"
	"github.com/packfinderz/outbox/destinations/redis"
	"github.com/packfinderz/outbox/destinations/redis/consumer"
	"github.com/packfinderz/outbox/destinations/redis/redistest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/consumetest"
	"github.com/packfinderz/outbox/outboxtest/inboxtest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

const testGroup = "billing"

func TestMain(m *testing.M) {
	inboxtest.RunIfAsked(untilKilled)
	goleak.VerifyTestMain(m)
}

// open makes a publisher from a URL and closes it with the test.
func open(t testing.TB, url string) *redis.Publisher {
	t.Helper()
	return publishertest.Open(t, url, redis.ParseURL, redis.New)
}

// openInbox makes an inbox from a URL and closes it with the test.
func openInbox(t testing.TB, url string) *redisinbox.Inbox {
	t.Helper()
	config, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	options, err := config.ClientOptions()
	if err != nil {
		t.Fatal(err)
	}
	client := goredis.NewUniversalClient(options)
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	in, err := redisinbox.New(redisinbox.Config{Client: client})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// start runs a consumer until stop, or the end of the test.
func start(t testing.TB, broker *redistest.Broker, config consumer.Config) (stop func()) {
	t.Helper()
	return startAt(t, broker.URL(), config).Stop
}

func startAt(t testing.TB, url string, config consumer.Config) *consumetest.Running {
	t.Helper()
	var err error
	if config.Broker, err = redis.ParseURL(url); err != nil {
		t.Fatal(err)
	}
	config.Broker.Create = true
	if config.Topic == "" {
		config.Topic = publishertest.Topic
	}
	config.Group = testGroup
	if config.Process.Logger == nil {
		config.Process.Logger = slog.New(slog.DiscardHandler)
	}
	if config.Process.Retry.Base == 0 {
		config.Process.Retry = outbox.RetryPolicy{Base: 20 * time.Millisecond, Max: 50 * time.Millisecond}
	}
	c, err := consumer.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return consumetest.Start(t, c)
}

// keyed are messages of some keys in turn.
func keyed(n, keys int) []outbox.Message {
	messages := publishertest.Messages(n)
	for i := range messages {
		messages[i].Key = "order/" + strconv.Itoa(i%keys)
	}
	return messages
}

func send(t testing.TB, broker *redistest.Broker, messages []outbox.Message) {
	t.Helper()
	if err := errors.Join(publishertest.Publish(t, open(t, broker.URL()), messages)...); err != nil {
		t.Fatal(err)
	}
}

// awaitPending waits until so many entries are delivered and not acknowledged.
func awaitPending(t testing.TB, broker *redistest.Broker, want int64) {
	t.Helper()
	await.Until(t, fmt.Sprintf("%d entries to be pending", want), func() bool {
		n, err := pending(broker)
		return err == nil && n == want
	})
}

// pending is how many entries are delivered and not acknowledged.
func pending(broker *redistest.Broker) (int64, error) {
	summary, err := broker.Client().XPending(context.Background(), publishertest.Topic, testGroup).Result()
	if err != nil {
		return 0, err
	}
	return summary.Count, nil
}

// ordered fails unless each key's messages came in the order in which they were sent.
func ordered(t testing.TB, sent, got []outbox.Message) {
	t.Helper()
	byKey := func(list []outbox.Message) map[string][]string {
		keys := make(map[string][]string)
		for i := range list {
			keys[list[i].Key] = append(keys[list[i].Key], list[i].ID.String())
		}
		return keys
	}
	want, have := byKey(sent), byKey(got)
	for key, ids := range want {
		if !slices.Equal(ids, have[key]) {
			t.Errorf("key %s: %d messages, not the %d that were sent, in order", key, len(have[key]), len(ids))
		}
	}
}
