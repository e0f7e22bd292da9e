package consumer_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/brokers/redis/consumer"
	"github.com/packfinderz/outbox/brokers/redis/redistest"
	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/consume/consumetest"
	"github.com/packfinderz/outbox/publishertest"
)

// TestConsumeStop stops a consumer that has one entry in each state: those being handled are finished
// and acknowledged, the rest comes to the next consumer at once and as if not delivered.
func TestConsumeStop(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "first"} {
		t.Run("name "+name, func(t *testing.T) {
			t.Parallel()
			broker, messages, handled := redistest.New(t), keyed(20, 20), consumetest.NewRecord()
			send(t, broker, messages)
			began, finish := make(chan struct{}, 20), make(chan struct{})
			stop := start(t, broker, consumer.Config{Concurrency: 4, Name: name, Process: consume.Config{Handlers: consumetest.Handler(func(context.Context, outbox.Message) error {
				began <- struct{}{}
				<-finish
				return nil
			})}})
			for range 4 {
				<-began
			}
			awaitPending(t, broker, 8)
			time.AfterFunc(100*time.Millisecond, func() { close(finish) })
			stop()
			if n := len(began); n != 0 {
				t.Errorf("%d more were begun", n)
			}
			awaitPending(t, broker, 4)
			startedAt := time.Now()
			stop = start(t, broker, consumer.Config{Name: name, Process: consume.Config{Handlers: consumetest.Handler(handled.Handle)}})
			got := handled.Await(t, 16)
			awaitPending(t, broker, 0)
			stop()
			if took := time.Since(startedAt); took > 10*time.Second {
				t.Errorf("it took %s", took)
			}
			// The entries in hand come first, and those after them as they are in the stream.
			if got[0].Attempt != 1 || len(handled.All()) != 16 {
				t.Errorf("%d deliveries, the first is attempt %d", len(handled.All()), got[0].Attempt)
			}
		})
	}
}

// TestConsumeGrace has a handler that does not finish by itself.
func TestConsumeGrace(t *testing.T) {
	t.Parallel()
	broker, handled := redistest.New(t), consumetest.NewRecord()
	send(t, broker, publishertest.Messages(1))
	stop := start(t, broker, consumer.Config{Grace: 200 * time.Millisecond, Process: consume.Config{Handlers: consumetest.Handler(func(ctx context.Context, m outbox.Message) error {
		handled.Add(m)
		<-ctx.Done()
		return ctx.Err()
	})}})
	handled.Await(t, 1)
	stop()
	awaitPending(t, broker, 1)
	start(t, broker, consumer.Config{Process: consume.Config{Handlers: consumetest.Handler(handled.Handle)}})
	if got := handled.Await(t, 2); got[1].Attempt != 2 {
		t.Errorf("it is attempt %d", got[1].Attempt)
	}
	awaitPending(t, broker, 0)
}

// TestConsumeStopFrozen stops a consumer whose Redis stands still: it ends soon all the same, and what
// it had comes again.
func TestConsumeStopFrozen(t *testing.T) {
	t.Parallel()
	broker, handled := redistest.New(t), consumetest.NewRecord()
	send(t, broker, keyed(8, 1))
	log := consumetest.NewLog()
	finish := make(chan struct{})
	stop := start(t, broker, consumer.Config{Concurrency: 4, Grace: time.Second, Process: consume.Config{
		Logger: log.Logger(),
		Handlers: consumetest.Handler(func(_ context.Context, m outbox.Message) error {
			handled.Add(m)
			<-finish
			return nil
		}),
	}})
	handled.Await(t, 1)
	awaitPending(t, broker, 8)
	thaw := broker.Freeze(t)
	close(finish)
	began := time.Now()
	stop()
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
	thaw()
	if text := log.String(); !strings.Contains(text, "could not be given back") {
		t.Errorf("it logged\n%s", text)
	}
	start(t, broker, consumer.Config{MinIdle: time.Second, Process: consume.Config{Handlers: consumetest.Handler(handled.Handle)}})
	awaitPending(t, broker, 0)
	if n := len(handled.All()); n < 8 {
		t.Errorf("%d deliveries of 8 messages", n)
	}
}
