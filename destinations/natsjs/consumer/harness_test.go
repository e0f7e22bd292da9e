package consumer_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/natsjs"
	"github.com/packfinderz/outbox/destinations/natsjs/consumer"
	"github.com/packfinderz/outbox/destinations/natsjs/natstest"
	"github.com/packfinderz/outbox/outboxtest/consumetest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

func TestMain(m *testing.M) {
	consumetest.RunIfAsked(untilKilled)
	goleak.VerifyTestMain(m)
}

// open makes a publisher from a URL, and closes it with the test.
func open(t testing.TB, url string) *natsjs.Publisher {
	t.Helper()
	return publishertest.Open(t, url, natsjs.ParseURL, natsjs.New)
}

const (
	durable = "billing"
	// deadTopic is a subject of the same stream, which is where dead letters are lost most easily.
	deadTopic = "orders.dead"
)

// ordersAndDead is a server whose stream has the orders and their dead letters.
func ordersAndDead(t testing.TB) *natstest.Broker {
	t.Helper()
	broker := natstest.New(t)
	js := jetStream(t, broker)
	if _, err := js.UpdateStream(t.Context(), jetstream.StreamConfig{
		Name: natstest.Stream, Subjects: []string{publishertest.Topic, deadTopic}, Storage: jetstream.FileStorage,
	}); err != nil {
		t.Fatal(err)
	}
	return broker
}

func jetStream(t testing.TB, broker *natstest.Broker) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(broker.Connect(t))
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// settings are of a consumer of the orders that makes its durable consumer itself.
func settings(t testing.TB, url string, handlers outbox.Publisher) consumer.Config {
	t.Helper()
	config, err := natsjs.ParseURL(url + "?create=true&stream=" + natstest.Stream)
	if err != nil {
		t.Fatal(err)
	}
	return consumer.Config{
		Broker: config, Topics: []string{publishertest.Topic}, Durable: durable, AckWait: 2 * time.Second,
		Process: consumetest.Quickly(handlers),
	}
}

// withDeadLetters adds dead letters to the settings.
func withDeadLetters(t testing.TB, config consumer.Config, url string) consumer.Config {
	t.Helper()
	config.Process.DeadLetters, config.Process.DeadLetterTopic = open(t, url), deadTopic
	return config
}

// start runs a consumer, until the test ends at the latest.
func start(t testing.TB, config consumer.Config) *consumetest.Running {
	t.Helper()
	c, err := consumer.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return consumetest.Start(t, c)
}

// letters are the dead letters in the stream.
func letters(t testing.TB, broker *natstest.Broker) (list []publishertest.Received) {
	t.Helper()
	for _, r := range broker.Received(t) {
		if r.Topic == deadTopic {
			list = append(list, r)
		}
	}
	return list
}

// unsettled is how many messages the durable consumer has yet to hear about, or to deliver.
func unsettled(t testing.TB, broker *natstest.Broker) int {
	t.Helper()
	c, err := jetStream(t, broker).Consumer(t.Context(), natstest.Stream, durable)
	if err != nil {
		t.Fatal(err)
	}
	info := c.CachedInfo()
	return info.NumAckPending + int(info.NumPending)
}
