package consumetest

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

// Consumer is a consumer of any broker.
type Consumer interface {
	Run(ctx context.Context) error
}

// Running is a consumer that runs.
type Running struct {
	// Cancel tells it to end, and does not wait.
	Cancel context.CancelFunc
	// Stop tells it to end and waits until it has. It can be called again.
	Stop func()
}

// Start runs a consumer, until the test ends at the latest.
func Start(t testing.TB, consumer Consumer) *Running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- consumer.Run(ctx) }()
	r := &Running{Cancel: cancel}
	r.Stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the consumer ended with %v", err)
			}
		case <-time.After(patience):
			t.Error("the consumer does not end")
		}
	})
	t.Cleanup(r.Stop)
	return r
}

// Quickly is a configuration with three deliveries and short waits between them.
func Quickly(handlers outbox.Publisher) consume.Config {
	return consume.Config{
		Handlers: handlers, MaxDeliveries: 3, Retry: outbox.RetryPolicy{Base: 10 * time.Millisecond, Max: 20 * time.Millisecond},
		Logger: slog.New(slog.DiscardHandler),
	}
}

// Events makes n events of some aggregates in turn. Each has its number in the header n.
func Events(n, aggregates int) []outbox.Message {
	list := make([]outbox.Message, n)
	for i := range list {
		aggregate := strconv.Itoa(i % aggregates)
		list[i] = outbox.Message{Event: outbox.Event{
			ID: uuid.New(), Topic: publishertest.Topic, Type: "order_created", AggregateType: "order", AggregateID: aggregate,
			Key: "order/" + aggregate, Payload: fmt.Appendf(nil, `{"n": %d}`, i), Headers: map[string]string{"n": strconv.Itoa(i)},
		}, CreatedAt: time.Now()}
	}
	return list
}

// Number is the number of one of Events.
func Number(t testing.TB, message *outbox.Message) (n int) {
	t.Helper()
	if _, err := fmt.Sscan(message.Headers["n"], &n); err != nil {
		t.Fatalf("event %s has no number: %v", message.ID, err)
	}
	return n
}

// InOrder fails unless the events of each aggregate came in their order.
func InOrder(t testing.TB, list []outbox.Message) {
	t.Helper()
	places := make(map[string]int)
	for i := range list {
		n, aggregate := Number(t, &list[i]), list[i].AggregateID
		if last, seen := places[aggregate]; seen && n <= last {
			t.Fatalf("aggregate %s: %d after %d", aggregate, n, last)
		}
		places[aggregate] = n
	}
}
