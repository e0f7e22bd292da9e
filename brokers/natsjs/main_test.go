package natsjs_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/brokers/natsjs"
	"github.com/packfinderz/outbox/brokers/natsjs/natstest"
	"github.com/packfinderz/outbox/consume/consumetest"
	"github.com/packfinderz/outbox/internal/await"
	"github.com/packfinderz/outbox/publishertest"
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

// publish publishes with a deadline.
func publish(t testing.TB, publisher outbox.Publisher, messages []outbox.Message) []error {
	t.Helper()
	return publishertest.Publish(t, publisher, messages)
}

// delivered fails unless every message was acknowledged.
func delivered(t testing.TB, publisher outbox.Publisher, messages []outbox.Message) {
	t.Helper()
	publishertest.Deliver(t, publisher, messages)
}

// answers pings until the server answers.
func answers(t testing.TB, publisher *natsjs.Publisher) {
	t.Helper()
	await.Until(t, "the broker to answer", func() bool { return publisher.Ping(t.Context()) == nil })
}

func TestSuite(t *testing.T) {
	t.Parallel()
	publishertest.Run(t, publishertest.Features{
		Ordered: true, Attributes: true, Binary: true,
		Poison: func(m *outbox.Message) { m.Payload = make([]byte, 1<<20+1) },
	}, func(t *testing.T) publishertest.Harness {
		t.Helper()
		broker := natstest.New(t)
		return publishertest.On(broker, open(t, broker.URL()))
	})
}
