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
		{name: "nats", open: func(t testing.TB) publishertest.Broker { return natstest.New(t) }},
	}
}
