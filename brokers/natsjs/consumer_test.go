package natsjs_test

import (
	"context"
	"errors"
	"sync/atomic"
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
	broker, done := ordersAndDead(t), consumetest.NewRecord()
	var failures atomic.Int32
	others := make(chan struct{})
	config := settings(t, broker.URL(), consumetest.Handler(func(_ context.Context, m outbox.Message) error {
		if m.Headers["n"] == "0" {
			if failures.Add(1) == 1 {
				return errors.New("not yet")
			}
			select {
			case <-others:
			default:
				return errors.New("not yet")
			}
		}
		done.Add(m)
		if m.Headers["n"] == "11" {
			close(others)
		}
		return nil
	}))
	config.Ordered, config.Concurrency = true, 8
	config.Process.MaxDeliveries = 1000
	sent := consumetest.Events(12, 2)
	publishertest.Deliver(t, open(t, broker.URL()), sent)
	start(t, config)
	var even, odd string
	for i, m := range done.Await(t, len(sent)) {
		if m.AggregateID == "0" {
			even += m.Headers["n"] + " "
			continue
		}
		odd += m.Headers["n"] + " "
		if i >= 6 {
			t.Errorf("event %s waited for another key", m.Headers["n"])
		}
	}
	if even != "0 2 4 6 8 10 " || odd != "1 3 5 7 9 11 " || failures.Load() < 2 {
		t.Errorf("handled %s and %s after %d failures", even, odd, failures.Load())
	}
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
