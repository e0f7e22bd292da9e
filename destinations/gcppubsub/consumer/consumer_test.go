package consumer_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/consume/inbox"
	"github.com/packfinderz/outbox/destinations/gcppubsub/pubsubtest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/consumetest"
	"github.com/packfinderz/outbox/outboxtest/inboxtest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

var errEffect = errors.New("the effect failed")

// Nothing goes wrong: every event is handled once, as it was published, those of a key in their
// order, and two consumers share the subscription.
func TestHealthy(t *testing.T) {
	t.Parallel()
	const events, keys = 2000, 100
	broker := subscribed(t)
	messages := publishertest.Messages(events)
	for i := range messages {
		messages[i].Key = strconv.Itoa(i % keys)
	}
	publishAll(t, broker, messages)
	handled := consumetest.NewRecord()
	config := consumerConfig(t, broker.URL(), consumetest.Handler(handled.Handle))
	for range 4 {
		run(t, config)
	}
	await.Until(t, "every event to be acknowledged", func() bool { return acked(broker, publishertest.Topic) == events })
	byID := make(map[string]int, events)
	for i := range messages {
		byID[messages[i].ID.String()] = i
	}
	last := make(map[string]int)
	got := handled.All()
	for _, m := range got {
		n := byID[m.ID.String()]
		if before, ok := last[m.Key]; ok && n <= before {
			t.Fatalf("of key %s event %d came after %d", m.Key, n, before)
		}
		last[m.Key] = n
		want := messages[n]
		if m.Attempt != 1 || m.Topic != want.Topic || m.Key != want.Key || string(m.Payload) != string(want.Payload) || m.Type != want.Type ||
			m.TenantID != want.TenantID || !m.CreatedAt.Equal(want.CreatedAt) || m.Headers["trace"] != "t1" || len(m.Headers) != 1 {
			t.Fatalf("handled %+v, want %+v", m, want)
		}
	}
	if len(got) != events || len(letters(broker)) != 0 {
		t.Errorf("%d events were handled, %d are dead letters", len(got), len(letters(broker)))
	}
}

// A handler fails every time: the event comes again with a growing number, and is then a dead
// letter. The number is the service's where that counts, which it does for dead letters of its
// own.
func TestFailure(t *testing.T) {
	t.Parallel()
	for name, counts := range map[string]bool{"counted here": false, "counted by the service": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := subscribed(t)
			if counts {
				countDeliveries(t, broker)
			}
			handled := consumetest.NewRecord()
			run(t, consumerConfig(t, broker.URL(), consumetest.Handler(func(_ context.Context, m outbox.Message) error { handled.Add(m); return errEffect })))
			messages := publishertest.Messages(1)
			publishAll(t, broker, messages)
			await.Until(t, "the dead letter", func() bool { return acked(broker, publishertest.Topic) == 1 })
			attempts := ""
			for _, m := range handled.All() {
				attempts += strconv.Itoa(m.Attempt) + " "
			}
			if attempts != "1 2 3 " {
				t.Errorf("the attempts were %s", attempts)
			}
			wantLetter(t, broker, &messages[0], consume.ReasonMaxDeliveries, "3")
		})
	}
}

// countDeliveries gives the subscription a dead-letter policy, far off.
func countDeliveries(t *testing.T, broker *pubsubtest.Broker) {
	t.Helper()
	broker.CreateTopic(t, "of-the-service")
	name := "projects/" + pubsubtest.Project + "/subscriptions/" + subscription
	if _, err := broker.Server.GServer.DeleteSubscription(t.Context(), &pubsubpb.DeleteSubscriptionRequest{Subscription: name}); err != nil {
		t.Fatal(err)
	}
	_, err := broker.Server.GServer.CreateSubscription(t.Context(), &pubsubpb.Subscription{
		Name: name, Topic: pubsubtest.TopicPath(publishertest.Topic), EnableMessageOrdering: true, AckDeadlineSeconds: 30,
		DeadLetterPolicy: &pubsubpb.DeadLetterPolicy{DeadLetterTopic: pubsubtest.TopicPath("of-the-service"), MaxDeliveryAttempts: 100},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func wantLetter(t *testing.T, broker *pubsubtest.Broker, message *outbox.Message, reason, deliveries string) {
	t.Helper()
	list := letters(broker)
	if len(list) != 1 {
		t.Fatalf("%d dead letters", len(list))
	}
	a := list[0].Attributes
	if a[consume.DeadReason] != reason || !strings.Contains(a[consume.DeadError], errEffect.Error()) || a[consume.DeadTopic] != publishertest.Topic ||
		a[consume.DeadDeliveries] != deliveries || a["event_id"] != message.ID.String() || string(list[0].Data) != string(message.Payload) {
		t.Errorf("the letter is %s with %q", list[0].Data, a)
	}
}

// A terminal error is a dead letter at once.
func TestTerminal(t *testing.T) {
	t.Parallel()
	broker := subscribed(t)
	run(t, consumerConfig(t, broker.URL(), consumetest.Handler(func(context.Context, outbox.Message) error { return outbox.Terminal(errEffect) })))
	messages := publishertest.Messages(1)
	publishAll(t, broker, messages)
	await.Until(t, "the dead letter", func() bool { return acked(broker, publishertest.Topic) == 1 })
	wantLetter(t, broker, &messages[0], string(outbox.ReasonTerminal), "1")
}

// Without dead letters nothing is given up, and what panics is only a failure.
func TestNeverGivesUp(t *testing.T) {
	t.Parallel()
	broker := subscribed(t)
	var calls atomic.Int32
	config := consumerConfig(t, broker.URL(), consumetest.Handler(func(context.Context, outbox.Message) error {
		if calls.Add(1)%2 == 0 {
			panic("a bug")
		}
		return outbox.Terminal(errEffect)
	}))
	config.Process.DeadLetters, config.Process.DeadLetterTopic = nil, ""
	run(t, config)
	publishAll(t, broker, publishertest.Messages(1))
	await.Until(t, "ten deliveries", func() bool { return calls.Load() >= 10 })
	if acked(broker, publishertest.Topic) != 0 {
		t.Error("it was acknowledged")
	}
}

// The dead letters' publisher panics: the event is not lost.
func TestLettersPanic(t *testing.T) {
	t.Parallel()
	broker := subscribed(t)
	config := consumerConfig(t, broker.URL(), consumetest.Handler(func(context.Context, outbox.Message) error { return outbox.Terminal(errEffect) }))
	var calls atomic.Int32
	config.Process.DeadLetters = consumetest.Handler(func(context.Context, outbox.Message) error { calls.Add(1); panic("a bug") })
	run(t, config)
	publishAll(t, broker, publishertest.Messages(1))
	await.Until(t, "three attempts at a letter", func() bool { return calls.Load() >= 3 })
	if acked(broker, publishertest.Topic) != 0 {
		t.Error("it was acknowledged")
	}
}

// A message that is no event is a dead letter with all that it had, and without what is the
// service's own.
func TestNoEvent(t *testing.T) {
	t.Parallel()
	broker := subscribed(t)
	run(t, consumerConfig(t, broker.URL(), consumetest.Handler(func(context.Context, outbox.Message) error { t.Error("it was handled"); return nil })))
	broker.Server.Publish(pubsubtest.TopicPath(publishertest.Topic), []byte("hello"), map[string]string{"from": "elsewhere", "googclient_x": "y"})
	await.Until(t, "the dead letter", func() bool { return acked(broker, publishertest.Topic) == 1 })
	list := letters(broker)
	if len(list) != 1 {
		t.Fatalf("%d dead letters", len(list))
	}
	a := list[0].Attributes
	if string(list[0].Data) != "hello" || a["from"] != "elsewhere" || a["googclient_x"] != "" || !strings.Contains(a[consume.DeadError], "no event") {
		t.Errorf("the letter is %s with %q", list[0].Data, a)
	}
}

// A CloudEvent is read back as the event that it was.
func TestCloudEvents(t *testing.T) {
	t.Parallel()
	broker := subscribed(t)
	got := make(chan outbox.Message, 1)
	run(t, consumerConfig(t, broker.URL(), consumetest.Handler(func(_ context.Context, m outbox.Message) error { got <- m; return nil })))
	want := publishertest.Messages(1)[0]
	publishertest.Fates(t, publishertest.Publish(t, pubsubtest.Open(t, broker.URL()+"&format=cloudevents"), []outbox.Message{want}), "")
	m := <-got
	if m.ID != want.ID || m.Type != want.Type || m.ContentType != want.ContentType || m.AggregateID != want.AggregateID || m.Key != want.Key ||
		m.Headers["trace"] != "t1" || len(m.Headers) != 1 {
		t.Errorf("got %+v, want %+v", m, want)
	}
}

// Every event is published twice, and has one effect.
func TestDuplicates(t *testing.T) {
	t.Parallel()
	const events = 100
	broker := subscribed(t)
	memory, err := inboxtest.NewMemory(inbox.TTL{})
	if err != nil {
		t.Fatal(err)
	}
	effects := consumetest.NewRecord()
	var deliveries atomic.Int32
	run(t, consumerConfig(t, broker.URL(), consumetest.Handler(func(ctx context.Context, m outbox.Message) error {
		deliveries.Add(1)
		_, err := inbox.Handle(ctx, memory, subscription, m.ID, func(context.Context) error { effects.Add(m); return nil })
		return err
	})))
	messages := publishertest.Messages(events)
	publishAll(t, broker, messages)
	publishAll(t, broker, messages)
	await.Until(t, "every copy to be acknowledged", func() bool { return acked(broker, publishertest.Topic) == 2*events })
	if times := consumetest.Counts(effects.All()); len(effects.All()) != events || len(times) != events || deliveries.Load() < 2*events {
		t.Errorf("%d effects of %d events in %d deliveries", len(effects.All()), len(times), deliveries.Load())
	}
}

// A handler takes long: the server is asked for more time again and again, so that its message is not
// delivered meanwhile.
func TestSlowHandler(t *testing.T) {
	t.Parallel()
	broker := subscribed(t)
	finished := make(chan struct{})
	finish := sync.OnceFunc(func() { close(finished) })
	config := consumerConfig(t, broker.URL(), consumetest.Handler(func(context.Context, outbox.Message) error {
		<-finished
		return nil
	}))
	run(t, config)
	t.Cleanup(finish) // also when it fails: the consumer's end waits for its handlers
	publishAll(t, broker, publishertest.Messages(1))
	await.Until(t, "three extensions of the deadline", func() bool {
		extensions := 0
		for _, m := range broker.Server.Messages() {
			for _, modack := range m.Modacks {
				if modack.AckDeadline > 0 {
					extensions++
				}
			}
		}
		return extensions >= 3
	})
	finish()
	await.Until(t, "the event to be acknowledged", func() bool { return acked(broker, publishertest.Topic) == 1 })
}
