package endtoend

import (
	"testing"

	"github.com/packfinderz/outbox/brokers/natsjs/natstest"
	"github.com/packfinderz/outbox/publishertest"
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
		{name: "nats", open: opens(natstest.New)},
	}
}

func opens[B publishertest.Broker](open func(testing.TB) B) func(testing.TB) publishertest.Broker {
	return func(tb testing.TB) publishertest.Broker {
		tb.Helper()
		return open(tb)
	}
}
