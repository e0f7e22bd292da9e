package redis_test

import (
	"testing"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/redis"
	"github.com/packfinderz/outbox/destinations/redis/redistest"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

func TestMain(m *testing.M) {
	pgtest.Main(m)
}

// open makes a publisher from a URL and closes it with the test.
func open(t testing.TB, url string) *redis.Publisher {
	t.Helper()
	return publishertest.Open(t, url, redis.ParseURL, redis.New)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	features := publishertest.Features{
		Ordered: true, Attributes: true, Keys: true, Binary: true,
		Poison: func(m *outbox.Message) { m.Payload = make([]byte, 1<<20) },
	}
	publishertest.Run(t, features, func(t *testing.T) publishertest.Harness {
		t.Helper()
		broker := redistest.New(t)
		return publishertest.On(broker, open(t, broker.URL()+"?max-size=1000000"))
	})
}
