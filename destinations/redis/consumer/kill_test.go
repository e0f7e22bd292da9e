package consumer_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/consume/inbox"
	"github.com/packfinderz/outbox/consume/inbox/redisinbox"
	"github.com/packfinderz/outbox/destinations/redis"
	"github.com/packfinderz/outbox/destinations/redis/consumer"
	"github.com/packfinderz/outbox/destinations/redis/redistest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/consumetest"
	"github.com/packfinderz/outbox/outboxtest/inboxtest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

const (
	// effects is a hash: how often each event has had its effect.
	effects = "effects"

	handledWord       = "handled"
	streamConcurrency = 4
)

// untilKilled handles the events of the stream at a URL until its process is killed.
func untilKilled(role []byte, process *inboxtest.Consumer) error {
	var url string
	if err := json.Unmarshal(role, &url); err != nil {
		return err
	}
	config, err := redis.ParseURL(url + "?create=true")
	if err != nil {
		return err
	}
	options, err := config.ClientOptions()
	if err != nil {
		return err
	}
	client := goredis.NewUniversalClient(options)
	in, err := redisinbox.New(redisinbox.Config{Client: client, TTL: inbox.TTL{Processing: time.Second}})
	if err != nil {
		return err
	}
	c, err := consumer.New(consumer.Config{
		Broker: config, Topic: publishertest.Topic, Group: testGroup, MinIdle: time.Second,
		Process: consume.Config{
			Concurrency: streamConcurrency, Logger: slog.New(slog.DiscardHandler),
			Handlers: consumetest.Handler(func(ctx context.Context, m outbox.Message) error {
				_, err := inbox.Handle(ctx, in, testGroup, m.ID, func(ctx context.Context) error {
					return client.HIncrBy(ctx, effects, m.ID.String(), 1).Err()
				})
				process.Say(handledWord)
				return err
			}),
		},
	})
	if err != nil {
		return err
	}
	go func() {
		process.AwaitParent()
		os.Exit(0)
	}()
	process.Say(inboxtest.Ready)
	return c.Run(context.Background())
}

// TestConsumeKilled kills consumers with kill -9 while they handle: everything that was not
// acknowledged comes to the next one.
func TestConsumeKilled(t *testing.T) {
	t.Parallel()
	kills := 5
	if os.Getenv("OUTBOX_CHAOS") == "long" {
		kills = 50
	}
	broker, messages := redistest.New(t), keyed(100*kills, 20)
	send(t, broker, messages)
	for range kills {
		c := inboxtest.Start(t, broker.URL(), "")
		for range 1 + rand.IntN(40) {
			c.Await(handledWord)
		}
		c.Kill()
	}
	inboxtest.Start(t, broker.URL(), "")
	await.Until(t, "every entry to be delivered", func() bool {
		return broker.Client().XInfoGroups(t.Context(), publishertest.Topic).Val()[0].Lag == 0
	})
	awaitPending(t, broker, 0)
	counts, total := broker.Client().HGetAll(t.Context(), effects).Val(), 0
	for i := range messages {
		n, _ := strconv.Atoi(counts[messages[i].ID.String()]) // 0 if it has none
		if n == 0 {
			t.Errorf("event %d had no effect", i)
		}
		total += n
	}
	// A second effect is where a kill fell between the effect and its mark.
	if most := len(messages) + kills*streamConcurrency; total > most {
		t.Errorf("%d effects, want %d at most", total, most)
	}
	t.Logf("%d events, %d kills, %d effects", len(messages), kills, total)
}
