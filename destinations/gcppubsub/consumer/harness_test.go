package consumer_test

import (
	"log/slog"
	"path"
	"slices"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/pstest"
	"go.uber.org/goleak"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/destinations/gcppubsub"
	"github.com/packfinderz/outbox/destinations/gcppubsub/consumer"
	"github.com/packfinderz/outbox/destinations/gcppubsub/pubsubtest"
	"github.com/packfinderz/outbox/outboxtest/consumetest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

const (
	subscription = "billing"
	deadTopic    = "orders-dead"
)

func TestMain(m *testing.M) {
	consumeIfAsked()
	goleak.VerifyTestMain(m,
		// The client looks only every ten seconds whether this one is to end,
		goleak.IgnoreTopFunction("cloud.google.com/go/pubsub/v2.(*messageIterator).streamKeepAliveHandler"),
		// and starts this one with the program.
		goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}

// subscribed starts a server with a subscription and a topic for dead letters.
func subscribed(t *testing.T, reactors ...pstest.ServerReactorOption) *pubsubtest.Broker {
	t.Helper()
	broker := pubsubtest.New(t, reactors...)
	broker.Subscribe(t, subscription)
	broker.CreateTopic(t, deadTopic)
	return broker
}

// consumerConfig is one for the subscription, with dead letters and short waits.
func consumerConfig(t *testing.T, url string, handlers outbox.Publisher) consumer.Config {
	t.Helper()
	config, err := gcppubsub.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	return consumer.Config{
		Broker: config, Subscription: subscription, AckDeadline: 10 * time.Second,
		Process: consume.Config{
			Handlers: handlers, DeadLetters: pubsubtest.Open(t, url), DeadLetterTopic: deadTopic, MaxDeliveries: 3,
			Retry: outbox.RetryPolicy{Base: 20 * time.Millisecond, Max: 100 * time.Millisecond}, Logger: slog.New(slog.DiscardHandler),
		},
	}
}

// run starts a consumer, which does not outlive the test.
func run(t *testing.T, config consumer.Config) *consumetest.Running {
	t.Helper()
	consumer, err := consumer.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return consumetest.Start(t, consumer)
}

// acked is how many messages of a topic the server need not deliver any more.
func acked(broker *pubsubtest.Broker, topic string) (n int) {
	for _, m := range broker.Server.Messages() {
		if path.Base(m.Topic) == topic && m.Acks > 0 {
			n++
		}
	}
	return n
}

// inHand is how many messages a consumer has told the server that it has.
func inHand(broker *pubsubtest.Broker) (n int) {
	for _, m := range broker.Server.Messages() {
		if len(m.Modacks) > 0 {
			n++
		}
	}
	return n
}

// givenBack is how many messages a consumer has told the server that it will not handle.
func givenBack(broker *pubsubtest.Broker) (n int) {
	for _, m := range broker.Server.Messages() {
		if slices.ContainsFunc(m.Modacks, func(modack pstest.Modack) bool { return modack.AckDeadline == 0 }) {
			n++
		}
	}
	return n
}

// letters are the dead letters.
func letters(broker *pubsubtest.Broker) (list []*pstest.Message) {
	for _, m := range broker.Server.Messages() {
		if path.Base(m.Topic) == deadTopic {
			list = append(list, m)
		}
	}
	return list
}

func publishAll(t *testing.T, broker *pubsubtest.Broker, messages []outbox.Message) {
	t.Helper()
	publishertest.Deliver(t, pubsubtest.Open(t, broker.URL()), messages)
}
