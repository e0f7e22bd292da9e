package consumer_test

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/kafka"
	"github.com/packfinderz/outbox/destinations/kafka/consumer"
	"github.com/packfinderz/outbox/destinations/kafka/kafkatest"
	"github.com/packfinderz/outbox/outboxtest/consumetest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

// consumers connects the suite to a cluster.
type consumers struct{ broker *kafkatest.Broker }

func (c consumers) Publish(t testing.TB, format string, messages []outbox.Message) {
	t.Helper()
	publishertest.Deliver(t, kafkatest.Open(t, c.broker.URL()+"?format="+format), messages)
}

func (c consumers) Foreign(t testing.TB, payload string, attributes map[string]string) {
	t.Helper()
	record := &kgo.Record{Topic: publishertest.Topic, Value: []byte(payload)}
	for name, value := range attributes {
		record.Headers = append(record.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(c.broker.Addresses(), ",")...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.ProduceSync(t.Context(), record).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

func (c consumers) Consumer(t testing.TB, options consumetest.Options) consumetest.Consumer {
	t.Helper()
	config := settings(t, c.broker.URL(), nil)
	config.Process = options.Process
	if options.DeadLetters {
		config.Process.DeadLetters, config.Process.DeadLetterTopic = kafkatest.Open(t, c.broker.URL()), deadTopic
	}
	consumer, err := consumer.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return consumer
}

func (c consumers) Unsettled(t testing.TB) int {
	t.Helper()
	return uncommitted(t, c.broker)
}

func (c consumers) Letters(t testing.TB) []publishertest.Received {
	t.Helper()
	list, err := kafkatest.Read(deadTopic, strings.Split(c.broker.Addresses(), ",")...)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestConsumers(t *testing.T) {
	t.Parallel()
	consumetest.Run(t, func(t *testing.T) consumetest.Harness {
		t.Helper()
		return consumers{cluster(t)}
	})
}

// untilKilled is the consumer that TestKilled kills.
func untilKilled(url string, handlers outbox.Publisher) (consumetest.Consumer, error) {
	config, err := kafka.ParseURL(url)
	if err != nil {
		return nil, err
	}
	process := consumetest.Quickly(handlers)
	process.Concurrency = 8
	return consumer.New(consumer.Config{
		Broker: config, Topics: []string{publishertest.Topic}, Group: group, SessionTimeout: 2 * time.Second, Process: process,
	})
}

func TestKilled(t *testing.T) {
	t.Parallel()
	broker := cluster(t)
	consumetest.Killed(t, broker.URL(), 1, consumers{broker})
}
