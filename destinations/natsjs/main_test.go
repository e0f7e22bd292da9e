package natsjs_test

import (
	"testing"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/natsjs"
	"github.com/packfinderz/outbox/destinations/natsjs/natstest"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// open makes a publisher from a URL, and closes it with the test.
func open(t testing.TB, url string) *natsjs.Publisher {
	t.Helper()
	return publishertest.Open(t, url, natsjs.ParseURL, natsjs.New)
}

func TestSuite(t *testing.T) {
	t.Parallel()
	publishertest.Run(t, publishertest.Features{
		Ordered: true, Attributes: true, Keys: true, Binary: true,
		Poison: func(m *outbox.Message) { m.Payload = make([]byte, 1<<20+1) },
	}, func(t *testing.T) publishertest.Harness {
		t.Helper()
		broker := natstest.New(t)
		return publishertest.On(broker, open(t, broker.URL()))
	})
}
