//go:build unix

package endtoend

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/destinations/gcppubsub"
	pubsubconsumer "github.com/packfinderz/outbox/destinations/gcppubsub/consumer"
	"github.com/packfinderz/outbox/destinations/gcppubsub/pubsubtest"
	"github.com/packfinderz/outbox/destinations/natsjs"
	natsconsumer "github.com/packfinderz/outbox/destinations/natsjs/consumer"
	"github.com/packfinderz/outbox/destinations/natsjs/natstest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

// subscription is a broker and the consumers that share what arrives there.
type subscription struct {
	broker    publishertest.Broker
	consumers []interface{ Run(context.Context) error }
	// idle reports whether the broker has nothing left to deliver.
	idle func() bool
}

func subscriptions() map[string]func(*testing.T, outbox.Publisher) *subscription {
	return map[string]func(*testing.T, outbox.Publisher) *subscription{"gcppubsub": subscribePubSub, "nats": subscribeNATS}
}

// processing has no dead letters: what fails comes again, soon.
func processing(handlers outbox.Publisher) consume.Config {
	return consume.Config{
		Handlers: handlers, Unknown: consume.RetryUnknown, Retry: outbox.RetryPolicy{Base: 10 * time.Millisecond, Max: 100 * time.Millisecond},
		Logger: slog.New(slog.DiscardHandler),
	}
}

func subscribePubSub(t *testing.T, handlers outbox.Publisher) *subscription {
	t.Helper()
	broker := pubsubtest.New(t)
	broker.Subscribe(t, consumerName)
	config, err := gcppubsub.ParseURL(broker.URL())
	if err != nil {
		t.Fatal(err)
	}
	s := &subscription{broker: broker, idle: func() bool {
		for _, m := range broker.Server.Messages() {
			if m.Acks == 0 {
				return false
			}
		}
		return true
	}}
	for range 8 { // the server is slow with each
		consumer, err := pubsubconsumer.New(pubsubconsumer.Config{Broker: config, Subscription: consumerName, Process: processing(handlers)})
		if err != nil {
			t.Fatal(err)
		}
		s.consumers = append(s.consumers, consumer)
	}
	return s
}

func subscribeNATS(t *testing.T, handlers outbox.Publisher) *subscription {
	t.Helper()
	broker := natstest.New(t)
	config, err := natsjs.ParseURL(broker.URL())
	if err != nil {
		t.Fatal(err)
	}
	config.Stream, config.Create = natstest.Stream, true
	s := &subscription{broker: broker}
	consumer, err := natsconsumer.New(natsconsumer.Config{
		Broker: config, Topics: []string{publishertest.Topic}, Durable: consumerName, Process: processing(handlers),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.consumers = append(s.consumers, consumer)
	js, err := jetstream.New(broker.Connect(t))
	if err != nil {
		t.Fatal(err)
	}
	s.idle = func() bool {
		durable, err := js.Consumer(t.Context(), natstest.Stream, consumerName)
		if err != nil {
			t.Fatal(err)
		}
		info := durable.CachedInfo()
		return info.NumPending == 0 && info.NumAckPending == 0
	}
	return s
}
