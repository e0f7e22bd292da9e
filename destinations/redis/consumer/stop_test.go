package consumer_test

import (
	"context"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/destinations/redis/consumer"
	"github.com/packfinderz/outbox/destinations/redis/redistest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/consumetest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
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
			stop := start(t, broker, consumer.Config{Name: name, Process: consume.Config{Concurrency: 4, Handlers: consumetest.Handler(func(ctx context.Context, _ outbox.Message) error {
				began <- struct{}{}
				select {
				case <-finish:
				case <-ctx.Done():
					t.Error("the context of a handler ended long before the grace was over")
				}
				return ctx.Err()
			})}})
			for range 4 {
				<-began
			}
			awaitPending(t, broker, 8)
			stopped := make(chan struct{})
			go func() {
				defer close(stopped)
				stop()
			}()
			await.Until(t, "what was not begun to be given back", func() bool { return len(began) > 0 || givenBack(t, broker) == 4 })
			close(finish)
			<-stopped
			if n := len(began); n != 0 {
				t.Errorf("%d more were begun", n)
			}
			if t.Failed() {
				return
			}
			awaitPending(t, broker, 4)
			// They do not wait for MinIdle.
			stop = start(t, broker, consumer.Config{Name: name, MinIdle: time.Hour, Process: consume.Config{Handlers: consumetest.Handler(handled.Handle)}})
			got := handled.Await(t, 16)
			awaitPending(t, broker, 0)
			stop()
			// The entries in hand come first, and those after them as they are in the stream.
			if got[0].Attempt != 1 || len(handled.All()) != 16 {
				t.Errorf("%d deliveries, the first is attempt %d", len(handled.All()), got[0].Attempt)
			}
		})
	}
}

// givenBack is how many entries wait for whoever looks next.
func givenBack(t testing.TB, broker *redistest.Broker) int {
	t.Helper()
	list, err := broker.Client().XPendingExt(t.Context(), &goredis.XPendingExtArgs{
		Stream: publishertest.Topic, Group: testGroup, Idle: time.Hour, Start: "-", End: "+", Count: 100,
	}).Result()
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// TestConsumeGrace has a handler that does not finish by itself. Its entry is not acknowledged, neither before nor after.
func TestConsumeGrace(t *testing.T) {
	t.Parallel()
	broker, handled := redistest.New(t), consumetest.NewRecord()
	send(t, broker, publishertest.Messages(1))
	stop := start(t, broker, consumer.Config{Process: consume.Config{Grace: 200 * time.Millisecond, Handlers: consumetest.Handler(func(ctx context.Context, m outbox.Message) error {
		handled.Add(m)
		<-ctx.Done()
		return ctx.Err()
	})}})
	handled.Await(t, 1)
	if n, err := pending(broker); n != 1 || err != nil {
		t.Fatalf("%d entries are pending while one is being handled (%v)", n, err)
	}
	stop()
	awaitPending(t, broker, 1)
	start(t, broker, consumer.Config{Process: consume.Config{Handlers: consumetest.Handler(handled.Handle)}})
	if got := handled.Await(t, 2); got[1].Attempt != 2 {
		t.Errorf("it is attempt %d", got[1].Attempt)
	}
	awaitPending(t, broker, 0)
}

// TestConsumeStopFrozen stops a consumer whose Redis stands still: it ends all the same, and what it
// had comes again.
func TestConsumeStopFrozen(t *testing.T) {
	t.Parallel()
	broker, handled := redistest.New(t), consumetest.NewRecord()
	send(t, broker, keyed(8, 1))
	log := consumetest.NewLog()
	finish := make(chan struct{})
	stop := start(t, broker, consumer.Config{Process: consume.Config{
		Concurrency: 4, Grace: time.Second,
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
	stop()
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
