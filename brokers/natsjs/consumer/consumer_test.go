package consumer_test

import (
	"context"
	"testing"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume/consumetest"
	"github.com/packfinderz/outbox/publishertest"
)

// TestOrdered has the first event of one key fail some times. Those behind it wait, those of
// other keys do not, although only one is handled at a time.
func TestOrdered(t *testing.T) {
	t.Parallel()
	broker, stubborn := ordersAndDead(t), consumetest.NewStubborn()
	config := settings(t, broker.URL(), consumetest.Handler(stubborn.Handle))
	config.Ordered, config.Concurrency = true, 8
	config.Process.MaxDeliveries = 1000
	publishertest.Deliver(t, open(t, broker.URL()), consumetest.Events(12, 2))
	start(t, config)
	stubborn.Check(t)
}

// TestSlowHandler handles for longer than the stream waits, with others of the key behind, and
// with a second consumer that would be given what comes again. Nothing does.
func TestSlowHandler(t *testing.T) {
	t.Parallel()
	broker, done := ordersAndDead(t), consumetest.NewRecord()
	config := settings(t, broker.URL(), consumetest.Handler(func(_ context.Context, m outbox.Message) error {
		done.Add(m)
		if len(done.All()) <= 2 {
			<-time.After(1500 * time.Millisecond) // it is the time that matters
		}
		return nil
	}))
	config.AckWait = 600 * time.Millisecond
	sent := consumetest.Events(6, 1)
	publishertest.Deliver(t, open(t, broker.URL()), sent)
	first := start(t, config)
	done.Await(t, 1)
	second := start(t, config)
	done.Await(t, len(sent))
	first.Stop()
	second.Stop()
	for _, m := range done.All() {
		if m.Attempt != 1 {
			t.Errorf("event %s was delivered %d times", m.Headers["n"], m.Attempt)
		}
	}
	if len(done.All()) != len(sent) {
		t.Errorf("%d deliveries of %d events", len(done.All()), len(sent))
	}
}
