package endtoend

import (
	"testing"

	"github.com/packfinderz/outbox/destinations/gcppubsub/pubsubtest"
	"github.com/packfinderz/outbox/destinations/kafka/kafkatest"
	"github.com/packfinderz/outbox/destinations/natsjs/natstest"
	"github.com/packfinderz/outbox/destinations/rabbitmq/rabbittest"
	"github.com/packfinderz/outbox/destinations/redis/redistest"
	"github.com/packfinderz/outbox/destinations/webhook/webhooktest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

// broker is a destination, on a real server.
type broker struct {
	name string
	open func(t testing.TB) publishertest.Broker
	// unordered is set where the other side cannot tell in which order messages came.
	unordered bool
}

func brokers() []broker {
	return []broker{
		{name: "gcppubsub", open: plainly(pubsubtest.New)},
		{name: "kafka", open: plainly(kafkatest.New)},
		{name: "nats", open: opens(natstest.New)},
		{name: "rabbitmq", open: plainly(rabbittest.New)},
		{name: "redis", open: plainly(redistest.New)},
		{name: "webhook", open: opens(webhooktest.New)},
	}
}

func opens[B publishertest.Broker](open func(testing.TB) B) func(testing.TB) publishertest.Broker {
	return func(tb testing.TB) publishertest.Broker {
		tb.Helper()
		return open(tb)
	}
}

// plainly opens a broker that can be told more, and is not.
func plainly[B publishertest.Broker, O any](open func(testing.TB, ...O) B) func(testing.TB) publishertest.Broker {
	return opens(func(tb testing.TB) B {
		tb.Helper()
		return open(tb)
	})
}
