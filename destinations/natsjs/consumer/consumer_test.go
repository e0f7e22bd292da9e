package consumer_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/consumetest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

// TestOrdered has the first event of one key fail some times. Those behind it wait, those of
// other keys do not, although only one is handled at a time.
func TestOrdered(t *testing.T) {
	t.Parallel()
	broker, stubborn := ordersAndDead(t), consumetest.NewStubborn()
	config := settings(t, broker.URL(), consumetest.Handler(stubborn.Handle))
	config.Ordered, config.Process.Concurrency = true, 8
	config.Process.MaxDeliveries = 1000
	publishertest.Deliver(t, open(t, broker.URL()), consumetest.Events(12, 2))
	start(t, config)
	stubborn.Check(t)
}

// TestKeyAlone brings an event's key to the consumer where no aggregate stands for it, whatever it is made of.
func TestKeyAlone(t *testing.T) {
	t.Parallel()
	broker, handled := ordersAndDead(t), make(chan outbox.Message, 2)
	config := settings(t, broker.URL(), consumetest.Handler(func(_ context.Context, m outbox.Message) error {
		handled <- m
		return nil
	}))
	sent := consumetest.Events(2, 1)
	for i, key := range []string{"order/42", "broken\nkey"} {
		sent[i].AggregateType, sent[i].AggregateID, sent[i].Key = "", "", key
	}
	publishertest.Deliver(t, open(t, broker.URL()), sent)
	start(t, config)
	for range sent {
		m := <-handled
		want := map[uuid.UUID]string{sent[0].ID: "order/42"}[m.ID] // the other one cannot be a header
		if _, left := m.Headers["event_key"]; m.Key != want || left {
			t.Errorf("the key is %q, want %q; the headers are %v", m.Key, want, m.Headers)
		}
	}
}

// TestSlowHandler handles for long, with others of the key behind: the server is told again and again
// that all of them are being worked on, so that none is delivered meanwhile.
func TestSlowHandler(t *testing.T) {
	t.Parallel()
	broker, done := ordersAndDead(t), consumetest.NewRecord()
	finished := make(chan struct{})
	finish := sync.OnceFunc(func() { close(finished) })
	config := settings(t, broker.URL(), consumetest.Handler(func(_ context.Context, m outbox.Message) error {
		done.Add(m)
		<-finished
		return nil
	}))
	config.AckWait, config.Ordered = 3*time.Second, true
	var mu sync.Mutex
	signs := make(map[string]int) // by message
	watch := broker.Connect(t)
	if _, err := watch.Subscribe("$JS.ACK.>", func(m *nats.Msg) {
		mu.Lock()
		defer mu.Unlock()
		if string(m.Data) == "+WPI" {
			signs[m.Subject]++
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := watch.Flush(); err != nil {
		t.Fatal(err)
	}
	sent := consumetest.Events(6, 1)
	publishertest.Deliver(t, open(t, broker.URL()), sent)
	start(t, config)
	t.Cleanup(finish) // also when it fails: the consumer's end waits for its handlers
	done.Await(t, 1)
	await.Until(t, "two signs of life of each message", func() bool {
		mu.Lock()
		defer mu.Unlock()
		enough := 0
		for _, n := range signs {
			if n >= 2 {
				enough++
			}
		}
		return enough >= len(sent)
	})
	finish()
	done.Await(t, len(sent))
}
