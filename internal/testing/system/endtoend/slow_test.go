//go:build unix

package endtoend

import (
	"net/url"
	"testing"
	"time"

	"github.com/packfinderz/outbox/outboxtest/publishertest"
	"github.com/packfinderz/outbox/outboxtest/tcpproxy"
)

const (
	// slowRate is how many bytes per second pass, and slowFor how long it is so slow: with that
	// a broker takes far less than there is.
	slowRate = 32 << 10
	slowFor  = 5 * time.Second
)

// throttler is a broker whose connections can be made slow.
type throttler interface {
	publishertest.Broker
	Throttle(bytesPerSecond int)
}

// behindProxy is a broker with a proxy before it.
type behindProxy struct {
	publishertest.Broker
	*tcpproxy.Proxy
}

// URL leads to the proxy.
func (b behindProxy) URL() string {
	u, err := url.Parse(b.Broker.URL())
	if err != nil {
		return err.Error()
	}
	u.Host = b.Address()
	return u.String()
}

func slowed(t *testing.T, server publishertest.Broker) throttler {
	t.Helper()
	if t, ok := server.(throttler); ok {
		return t
	}
	u, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	return behindProxy{server, tcpproxy.New(t, u.Host)}
}

// TestSlow has a broker that takes next to nothing for a while: the relay waits with it, and
// holds no more than its batches.
func TestSlow(t *testing.T) {
	t.Parallel()
	program := program(t)
	for _, b := range brokers() {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			server := slowed(t, b.open(t))
			r := newRun(t, program, server)
			if err := r.emit(outageEvents); err != nil {
				t.Fatal(err)
			}
			server.Throttle(slowRate)
			relay := r.relay()
			relay.AwaitLog(t, "relay started")
			r.watch(relay, slowFor)
			if n := r.delivered(); n == outageEvents {
				t.Fatal("the broker was not slow")
			}
			server.Throttle(0)
			r.awaitDelivered(relay, outageEvents)
			r.stop(relay)
			r.check(b, 4)
		})
	}
}
