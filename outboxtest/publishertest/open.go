package publishertest

import (
	"context"
	"io"
	"testing"

	"github.com/packfinderz/outbox"
)

// Open makes a publisher from a destination's URL, with the two functions that every
// destination has for it. It is closed with the test, twice: a publisher must not mind.
func Open[C any, P interface {
	outbox.Publisher
	io.Closer
}](t testing.TB, url string, parse func(string) (C, error), open func(C) (P, error),
) P {
	t.Helper()
	config, err := parse(url)
	if err != nil {
		t.Fatal(err)
	}
	publisher, err := open(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 2 {
			if err := publisher.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return publisher
}

// Publish publishes within the time that a test has, and fails unless there is one result
// per message.
func Publish(t testing.TB, publisher outbox.Publisher, messages []outbox.Message) []error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	errs := publisher.Publish(ctx, messages)
	if len(errs) != len(messages) {
		t.Fatalf("%d results for %d messages", len(errs), len(messages))
	}
	return errs
}

// Deliver publishes, and fails unless every message is acknowledged.
func Deliver(t testing.TB, publisher outbox.Publisher, messages []outbox.Message) {
	t.Helper()
	for i, err := range Publish(t, publisher, messages) {
		if err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
	}
}

// On is the harness of a broker and a publisher that publishes to it.
func On(broker Broker, publisher outbox.Publisher) Harness { return onBroker{broker, publisher} }

type onBroker struct {
	Broker
	publisher outbox.Publisher
}

func (h onBroker) Publisher() outbox.Publisher { return h.publisher }
