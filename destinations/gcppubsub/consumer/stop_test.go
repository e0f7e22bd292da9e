package consumer_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/pstest"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/consumetest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

// A consumer that is stopped acknowledges what it finishes and nothing more, and gives the rest back:
// another one has it while the first is still at it.
func TestStops(t *testing.T) {
	t.Parallel()
	const events, concurrency = 8, 4 // half are handled, and half wait
	broker := subscribed(t)
	publishAll(t, broker, publishertest.Messages(events))
	begun, proceed := make(chan struct{}, events), make(chan struct{})
	first, second := consumetest.NewRecord(), consumetest.NewRecord()
	config := consumerConfig(t, broker.URL(), consumetest.Handler(func(ctx context.Context, m outbox.Message) error {
		first.Add(m)
		begun <- struct{}{}
		<-proceed
		return ctx.Err() // which a stop must not end
	}))
	config.Process.Concurrency = concurrency
	consumer := run(t, config)
	for range concurrency {
		<-begun
	}
	await.Until(t, "as many to wait", func() bool { return inHand(broker) == events })
	consumer.Cancel()
	await.Until(t, "the rest to be given back", func() bool { return givenBack(broker) == events-concurrency })
	other := run(t, consumerConfig(t, broker.URL(), consumetest.Handler(second.Handle)))
	await.Until(t, "the rest", func() bool { return acked(broker, publishertest.Topic) == events-concurrency })
	close(proceed)
	consumer.Stop()
	other.Stop()
	if n := len(first.All()); n != concurrency || acked(broker, publishertest.Topic) != events {
		t.Errorf("%d events were begun and %d acknowledged, want %d and %d", n, acked(broker, publishertest.Topic), concurrency, events)
	}
	if times := consumetest.Counts(second.All()); len(times) != events-concurrency {
		t.Errorf("the second consumer handled %d events, want %d", len(times), events-concurrency)
	}
}

// A handler does not end with its context: the stop waits for the grace, and not for it.
func TestGrace(t *testing.T) {
	t.Parallel()
	broker := subscribed(t)
	publishAll(t, broker, publishertest.Messages(1))
	begun, never := make(chan struct{}), make(chan struct{})
	defer close(never)
	config := consumerConfig(t, broker.URL(), consumetest.Handler(func(context.Context, outbox.Message) error {
		close(begun)
		<-never
		return nil
	}))
	config.Process.Grace = 100 * time.Millisecond
	consumer := run(t, config)
	<-begun
	consumer.Stop()
	if acked(broker, publishertest.Topic) != 0 {
		t.Error("the event was acknowledged")
	}
}

// A consumer can be stopped while the service is away.
func TestStopsInOutage(t *testing.T) {
	t.Parallel()
	broker := subscribed(t)
	log := consumetest.NewLog()
	begun, proceed := make(chan struct{}), make(chan struct{})
	config := consumerConfig(t, broker.URL(), consumetest.Handler(func(context.Context, outbox.Message) error {
		close(begun)
		<-proceed
		return nil
	}))
	config.Process.Logger = log.Logger()
	consumer := run(t, config)
	publishAll(t, broker, publishertest.Messages(1))
	<-begun
	broker.Stop(t)
	await.Until(t, "the outage to be noticed", func() bool { return log.Count("waiting for Pub/Sub") == 1 })
	close(proceed)
	consumer.Stop()
}

// The service goes and comes back in the middle: nothing is lost, it is spoken of once, and what
// is published then is handled.
func TestOutage(t *testing.T) {
	t.Parallel()
	const events = 600
	broker := subscribed(t)
	messages := publishertest.Messages(events)
	publishAll(t, broker, messages)
	handled := consumetest.NewRecord()
	log := consumetest.NewLog()
	config := consumerConfig(t, broker.URL(), consumetest.Handler(handled.Handle))
	config.Process.Logger = log.Logger()
	run(t, config)
	await.Until(t, "some events", func() bool { return len(handled.All()) > events/10 })
	broker.Stop(t)
	await.Until(t, "the outage to be noticed", func() bool { return log.Count("waiting for Pub/Sub") == 1 })
	if acked(broker, publishertest.Topic) == events {
		t.Fatal("the service was not missed")
	}
	before := len(handled.All())
	broker.Start(t)
	await.Until(t, "the next event", func() bool { return len(handled.All()) > before })
	await.Until(t, "every event to be acknowledged", func() bool { return acked(broker, publishertest.Topic) == events })
	if times := consumetest.Counts(handled.All()); len(times) != events {
		t.Errorf("%d of %d events were handled", len(times), events)
	}
	if log.Count("waiting for Pub/Sub") != 1 || log.Count("received again") != 1 {
		t.Errorf("the log is\n%s", log.String())
	}
}

// A consumer needs nobody at its start: neither the service nor the subscription.
func TestWaits(t *testing.T) {
	t.Parallel()
	broker := subscribed(t)
	broker.Stop(t)
	log := consumetest.NewLog()
	got := make(chan outbox.Message, 1)
	config := consumerConfig(t, broker.URL(), consumetest.Handler(func(_ context.Context, m outbox.Message) error { got <- m; return nil }))
	config.Process.Logger, config.Subscription = log.Logger(), "later"
	run(t, config)
	await.Until(t, "the outage to be noticed", func() bool { return log.Count("waiting for Pub/Sub") == 1 })
	broker.Start(t)
	await.Until(t, "the subscription to be missed", func() bool { return log.Count("subscriptions/later is not there; create it") == 1 })
	broker.Subscribe(t, "later")
	publishAll(t, broker, publishertest.Messages(1))
	<-got
}

// Who may consume may not always ask about the subscription.
func TestMayNotAsk(t *testing.T) {
	t.Parallel()
	broker := subscribed(t, pstest.WithErrorInjection("GetSubscription", codes.PermissionDenied, "as the test wants it"))
	got := make(chan outbox.Message, 1)
	config := consumerConfig(t, broker.URL(), consumetest.Handler(func(_ context.Context, m outbox.Message) error { got <- m; return nil }))
	config.Topic = publishertest.Topic
	run(t, config)
	publishAll(t, broker, publishertest.Messages(1))
	if m := <-got; m.Topic != publishertest.Topic {
		t.Errorf("handled %+v", m)
	}
}

// The service refuses for a while, each time with the same words: they are logged once.
func TestRefused(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	broker := subscribed(t, pstest.ServerReactorOption{FuncName: "GetSubscription", Reactor: reactor(func(any) error {
		if asked.Add(1) <= 3 {
			return status.Error(codes.Unauthenticated, "as the test wants it")
		}
		return nil
	})})
	log := consumetest.NewLog()
	got := make(chan outbox.Message, 1)
	config := consumerConfig(t, broker.URL(), consumetest.Handler(func(_ context.Context, m outbox.Message) error { got <- m; return nil }))
	config.Process.Logger = log.Logger()
	run(t, config)
	publishAll(t, broker, publishertest.Messages(1))
	<-got
	if n := log.Count("as the test wants it"); n != 1 {
		t.Errorf("it was logged %d times", n)
	}
}

// Messages that fail wait without holding up the others, however many they are.
func TestFailuresDoNotHoldUp(t *testing.T) {
	t.Parallel()
	const events, concurrency = 60, 4
	broker := subscribed(t)
	messages := publishertest.Messages(events)
	for i := range messages {
		messages[i].Type = [...]string{"good", "bad"}[i%2]
	}
	good := consumetest.NewRecord()
	config := consumerConfig(t, broker.URL(), consumetest.Handler(func(_ context.Context, m outbox.Message) error {
		if m.Type == "bad" {
			return fmt.Errorf("%w: a long wait follows", errEffect)
		}
		good.Add(m)
		return nil
	}))
	config.Process.Concurrency, config.Process.DeadLetters, config.Process.DeadLetterTopic = concurrency, nil, ""
	config.Process.Retry = outbox.RetryPolicy{Base: time.Hour, Max: time.Hour}
	run(t, config)
	publishAll(t, broker, messages)
	await.Until(t, "the good events", func() bool { return len(consumetest.Counts(good.All())) == events/2 })
}

// reactor answers requests for which it gives an error.
type reactor func(request any) error

func (f reactor) React(request any) (bool, any, error) {
	err := f(request)
	return err != nil, nil, err
}
