package natsjs_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/brokers/natsjs"
	"github.com/packfinderz/outbox/brokers/natsjs/natstest"
	"github.com/packfinderz/outbox/publishertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 30 * time.Second

// open makes a publisher from a URL, and closes it with the test.
func open(t testing.TB, url string) *natsjs.Publisher {
	t.Helper()
	config, err := natsjs.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	publisher, err := natsjs.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := publisher.Close(); err != nil {
			t.Error(err)
		}
	})
	return publisher
}

// publish publishes with a deadline.
func publish(t testing.TB, publisher outbox.Publisher, messages []outbox.Message) []error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	errs := publisher.Publish(ctx, messages)
	if len(errs) != len(messages) {
		t.Fatalf("%d results for %d messages", len(errs), len(messages))
	}
	return errs
}

// delivered fails unless every message was acknowledged.
func delivered(t testing.TB, publisher outbox.Publisher, messages []outbox.Message) {
	t.Helper()
	for i, err := range publish(t, publisher, messages) {
		if err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
	}
}

// answers pings until the server answers.
func answers(t testing.TB, publisher *natsjs.Publisher) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := publisher.Ping(ctx)
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("the server does not answer: %v", err)
		}
	}
}

type harness struct {
	*natstest.Broker
	publisher outbox.Publisher
}

func (h *harness) Publisher() outbox.Publisher { return h.publisher }

func TestSuite(t *testing.T) {
	t.Parallel()
	publishertest.Run(t, publishertest.Features{
		Ordered: true, Attributes: true, Binary: true,
		Poison: func(m *outbox.Message) { m.Payload = make([]byte, 1<<20+1) },
	}, func(t *testing.T) publishertest.Harness {
		t.Helper()
		broker := natstest.New(t)
		return &harness{broker, open(t, broker.URL())}
	})
}
