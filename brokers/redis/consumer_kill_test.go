package redis_test

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/brokers/redis"
	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/consume/consumetest"
	"github.com/packfinderz/outbox/inbox"
	"github.com/packfinderz/outbox/inbox/inboxtest"
	"github.com/packfinderz/outbox/internal/await"
	"github.com/packfinderz/outbox/publishertest"
)

// consumeStream handles the events of the stream until its input ends.
func (p *process) consumeStream(config redis.Config) error {
	config.Create = true
	consumer, err := redis.NewConsumer(redis.ConsumerConfig{
		Config: config, Topic: publishertest.Topic, Group: testGroup, MinIdle: time.Second, Concurrency: streamConcurrency,
		Process: consume.Config{
			Logger: slog.New(slog.DiscardHandler),
			Handlers: consumetest.Handler(func(ctx context.Context, m outbox.Message) error {
				_, err := inbox.Handle(ctx, p.inbox, inboxConsumer, m.ID, func(context.Context) error { return p.work(m.ID) })
				p.Say(handledWord)
				return err
			}),
		},
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		p.AwaitParent()
		os.Exit(0)
	}()
	p.Say(inboxtest.Ready)
	return consumer.Run(ctx)
}

const (
	handledWord       = "handled"
	streamConcurrency = 4
)

// TestConsumeKilled kills consumers with kill -9 while they handle: everything that was not
// acknowledged comes to the next one.
func TestConsumeKilled(t *testing.T) {
	t.Parallel()
	kills := 5
	if os.Getenv("OUTBOX_CHAOS") == "long" {
		kills = 50
	}
	b := newBench(t)
	messages := keyed(100*kills, 20)
	send(t, b.broker, messages)
	for range kills {
		c := b.start(role{Stream: true})
		for range 1 + rand.IntN(40) {
			c.Await(handledWord)
		}
		c.Kill()
	}
	b.start(role{Stream: true})
	await.Until(t, "every entry to be delivered", func() bool {
		return b.broker.Client().XInfoGroups(t.Context(), publishertest.Topic).Val()[0].Lag == 0
	})
	awaitPending(t, b.broker, 0)
	effects := 0
	for i := range messages {
		n := b.count(messages[i].ID)
		if n == 0 {
			t.Errorf("event %d had no effect", i)
		}
		effects += n
	}
	// A second effect is where a kill fell between the effect and its mark.
	if most := len(messages) + kills*streamConcurrency; effects > most {
		t.Errorf("%d effects, want %d at most", effects, most)
	}
	t.Logf("%d events, %d kills, %d effects", len(messages), kills, effects)
}
