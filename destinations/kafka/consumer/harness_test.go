package consumer_test

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/kafka"
	"github.com/packfinderz/outbox/destinations/kafka/consumer"
	"github.com/packfinderz/outbox/destinations/kafka/kafkatest"
	"github.com/packfinderz/outbox/outboxtest/consumetest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

const (
	group     = "billing"
	deadTopic = "orders.dead"
)

func TestMain(m *testing.M) {
	consumetest.RunIfAsked(untilKilled)
	goleak.VerifyTestMain(m)
}

// cluster is one whose groups are quick to miss a member.
func cluster(t testing.TB) *kafkatest.Broker {
	t.Helper()
	return kafkatest.New(t, kfake.GroupMinSessionTimeout(time.Second), kfake.SeedTopics(kafkatest.Partitions, publishertest.Topic, deadTopic))
}

// settings are of a consumer of the orders.
func settings(t testing.TB, url string, handlers outbox.Publisher) consumer.Config {
	t.Helper()
	config, err := kafka.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	return consumer.Config{
		Broker: config, Group: group, Topics: []string{publishertest.Topic}, SessionTimeout: 3 * time.Second,
		Process: consumetest.Quickly(handlers),
	}
}

// start runs a consumer, until the test ends at the latest.
func start(t testing.TB, config consumer.Config) *consumetest.Running {
	t.Helper()
	consumer, err := consumer.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return consumetest.Start(t, consumer)
}

// uncommitted is how many records the group has yet to commit.
func uncommitted(t testing.TB, broker *kafkatest.Broker) int {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(broker.Addresses(), ",")...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ask := kmsg.NewPtrOffsetFetchRequest()
	ask.Group = group
	wanted := kmsg.NewOffsetFetchRequestGroup()
	wanted.Group = group
	ask.Groups = append(ask.Groups, wanted)
	answer, err := ask.RequestWith(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	left := len(broker.Received(t))
	for _, g := range answer.Groups {
		for _, topic := range g.Topics {
			for _, p := range topic.Partitions {
				left -= int(max(p.Offset, 0))
			}
		}
	}
	return left
}
