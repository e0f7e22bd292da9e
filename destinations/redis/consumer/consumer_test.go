package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/consume/inbox"
	"github.com/packfinderz/outbox/destinations/redis"
	"github.com/packfinderz/outbox/destinations/redis/consumer"
	"github.com/packfinderz/outbox/destinations/redis/redistest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/consumetest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

func TestConsume(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"plain", "cloudevents"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			broker, messages, handled := redistest.New(t), keyed(2000, 50), consumetest.NewRecord()
			for i := range messages {
				if i%10 == 0 {
					messages[i].Key = "" // no order
				}
			}
			url := broker.URL()
			if format == "cloudevents" {
				url += "?format=cloudevents&source=/shop"
			}
			if err := errors.Join(publishertest.Publish(t, open(t, url), messages)...); err != nil {
				t.Fatal(err)
			}
			stop := start(t, broker, consumer.Config{Process: consume.Config{Handlers: consumetest.Handler(handled.Handle)}})
			got := handled.Await(t, len(messages))
			awaitPending(t, broker, 0)
			stop()
			if n := len(handled.All()); n != len(messages) {
				t.Fatalf("%d messages were handled, want %d", n, len(messages))
			}
			keysOnly := func(list []outbox.Message) []outbox.Message {
				return slices.DeleteFunc(slices.Clone(list), func(m outbox.Message) bool { return m.Key == "" })
			}
			ordered(t, keysOnly(messages), keysOnly(got))
			for i := range got {
				if got[i].ID == messages[1].ID {
					same(t, messages[1], got[i])
				}
			}
			consumers := broker.Client().XInfoConsumers(t.Context(), publishertest.Topic, testGroup).Val()
			if len(consumers) != 0 {
				t.Errorf("the consumer's name stays: %+v", consumers)
			}
		})
	}
}

// TestConsumeTogether has three consumers in a group: each event is handled by one of them.
func TestConsumeTogether(t *testing.T) {
	t.Parallel()
	broker, messages, handled := redistest.New(t), publishertest.Messages(1000), consumetest.NewRecord()
	var stops []func()
	for range 3 {
		stops = append(stops, start(t, broker, consumer.Config{MinIdle: time.Second, Process: consume.Config{Handlers: consumetest.Handler(handled.Handle)}}))
	}
	send(t, broker, messages)
	handled.Await(t, len(messages))
	awaitPending(t, broker, 0)
	for _, stop := range stops {
		stop()
	}
	ids := make(map[string]bool)
	for _, m := range handled.All() {
		ids[m.ID.String()] = true
	}
	if n := len(handled.All()); n != len(messages) || len(ids) != n {
		t.Errorf("%d deliveries of %d events, want %d", n, len(ids), len(messages))
	}
}

// same fails unless an event came as it was sent.
func same(t testing.TB, sent, got outbox.Message) {
	t.Helper()
	got.Namespace = sent.Namespace // CloudEvents has none
	if fmt.Sprintf("%+v", sent) != fmt.Sprintf("%+v", got) {
		t.Errorf("got\n%+v, want\n%+v", got, sent)
	}
}

// TestConsumeFailing has an event fail for good: the later ones of its key wait for it, those of other
// keys do not, and it lies in the dead letters in the end.
func TestConsumeFailing(t *testing.T) {
	t.Parallel()
	broker, messages, handled := redistest.New(t), keyed(30, 3), consumetest.NewRecord()
	bad, terminal := messages[3].ID, messages[4].ID
	broker.Create(t, "orders.dead")
	send(t, broker, messages)
	start(t, broker, consumer.Config{Process: consume.Config{
		MaxDeliveries: 3, DeadLetters: open(t, broker.URL()), DeadLetterTopic: "orders.dead",
		Handlers: consumetest.Handler(func(_ context.Context, m outbox.Message) error {
			handled.Add(m)
			switch m.ID {
			case bad:
				panic("the effect failed")
			case terminal:
				return outbox.Terminal(errors.New("never"))
			}
			return nil
		}),
	}})
	got := handled.Await(t, len(messages)+2)
	awaitPending(t, broker, 0)
	if len(got) != len(messages)+2 {
		t.Errorf("%d deliveries, want %d", len(got), len(messages)+2)
	}
	var attempts []int
	got = slices.DeleteFunc(got, func(m outbox.Message) bool {
		if m.ID == bad {
			attempts = append(attempts, m.Attempt)
		}
		return m.ID == bad && m.Attempt > 1
	})
	if !slices.Equal(attempts, []int{1, 2, 3}) {
		t.Errorf("the attempts were %v", attempts)
	}
	ordered(t, messages, got)
	letters := make(map[string]map[string]string)
	for _, letter := range broker.ReceivedIn(t, "orders.dead") {
		letters[letter.ID.String()] = letter.Attributes
	}
	for id, want := range map[string][]string{
		bad.String():      {"max_deliveries", "publisher panicked: the effect failed", "orders", "3"},
		terminal.String(): {"terminal", "never", "orders", "1"},
	} {
		a := letters[id]
		if have := []string{a[consume.DeadReason], a[consume.DeadError], a[consume.DeadTopic], a[consume.DeadDeliveries]}; !slices.Equal(have, want) {
			t.Errorf("the dead letter has %v, want %v", have, want)
		}
	}
	if len(letters) != 2 {
		t.Errorf("%d dead letters", len(letters))
	}
}

// TestConsumeWithoutDeadLetters has an event that is never given up.
func TestConsumeWithoutDeadLetters(t *testing.T) {
	t.Parallel()
	broker, handled := redistest.New(t), consumetest.NewRecord()
	send(t, broker, publishertest.Messages(1))
	start(t, broker, consumer.Config{Process: consume.Config{Handlers: consumetest.Handler(func(_ context.Context, m outbox.Message) error {
		handled.Add(m)
		return outbox.Terminal(errors.New("never"))
	})}})
	for i, m := range handled.Await(t, 20) {
		if m.Attempt != i+1 {
			t.Errorf("delivery %d is attempt %d", i+1, m.Attempt)
		}
	}
	awaitPending(t, broker, 1)
}

// TestConsumeNoEvent has entries of somebody else in the stream.
func TestConsumeNoEvent(t *testing.T) {
	t.Parallel()
	broker := redistest.New(t)
	broker.Create(t, "dead")
	for _, values := range []map[string]any{
		{"greeting": "hello"}, {"event_id": "7", "payload": "x"}, {"event_id": publishertest.Messages(1)[0].ID.String()},
	} {
		if err := broker.Client().XAdd(t.Context(), &goredis.XAddArgs{Stream: publishertest.Topic, Values: values}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	start(t, broker, consumer.Config{Process: consume.Config{
		DeadLetters: open(t, broker.URL()), DeadLetterTopic: "dead",
		Handlers: consumetest.Handler(func(context.Context, outbox.Message) error { t.Error("it was handled"); return nil }),
	}})
	await.Until(t, "three dead letters", func() bool { return broker.Client().XLen(t.Context(), "dead").Val() == 3 })
	awaitPending(t, broker, 0)
	letters := broker.ReceivedIn(t, "dead")
	if a := letters[0].Attributes; a["greeting"] != "hello" && letters[1].Attributes["greeting"] != "hello" && letters[2].Attributes["greeting"] != "hello" {
		t.Errorf("the letters lack what the entries had: %v", letters)
	}
	for _, letter := range letters {
		if letter.Attributes[consume.DeadReason] != "terminal" {
			t.Errorf("the letter has %v", letter.Attributes)
		}
	}
}

// refusals is how often the server has answered with an error of a kind.
func refusals(t testing.TB, broker *redistest.Broker, kind string) (n int) {
	t.Helper()
	_, rest, _ := strings.Cut(broker.Client().Info(t.Context(), "errorstats").Val(), "errorstat_"+kind+":count=")
	_, _ = fmt.Sscan(rest, &n) // none yet
	return n
}

// TestConsumeMissingGroup waits for a group that it may not make, and says so once.
func TestConsumeMissingGroup(t *testing.T) {
	t.Parallel()
	broker, handled := redistest.New(t), consumetest.NewRecord()
	send(t, broker, publishertest.Messages(1))
	config, err := redis.ParseURL(broker.URL())
	if err != nil {
		t.Fatal(err)
	}
	log := consumetest.NewLog()
	c, err := consumer.New(consumer.Config{Broker: config, Topic: publishertest.Topic, Group: testGroup, Process: consume.Config{
		Logger:   log.Logger(),
		Handlers: consumetest.Handler(handled.Handle),
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	log.Await(t, "?create=true")
	await.Until(t, "some more tries", func() bool { return refusals(t, broker, "NOGROUP") >= 4 })
	if text := log.String(); strings.Count(text, "\n") != 1 {
		t.Errorf("it logged %s", text)
	}
	if err := broker.Client().XGroupCreate(t.Context(), publishertest.Topic, testGroup, "0").Err(); err != nil {
		t.Fatal(err)
	}
	handled.Await(t, 1)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	where := redis.Config{Addresses: []string{"127.0.0.1:1"}}
	handlers := consume.Config{Handlers: consumetest.Handler(func(context.Context, outbox.Message) error { return nil })}
	for words, config := range map[string]consumer.Config{
		"no address is named": {Topic: "a", Group: "b", Process: handlers},
		"Group is missing":    {Broker: where, Topic: "a", Process: handlers},
		"MinIdle is 1ms":      {Broker: where, Topic: "a", Group: "b", MinIdle: time.Millisecond, Process: handlers},
		"Handlers is missing": {Broker: where, Topic: "a", Group: "b"},
	} {
		if _, err := consumer.New(config); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%v, want %q", err, words)
		}
	}
}

// TestConsumeCluster has the inbox and the stream in a cluster.
func TestConsumeCluster(t *testing.T) {
	t.Parallel()
	broker := redistest.NewCluster(t)
	messages, handled := keyed(100, 10), consumetest.NewRecord()
	in := openInbox(t, broker.URL()+"?cluster=true")
	send(t, broker, messages)
	running := startAt(t, broker.URL()+"?cluster=true", consumer.Config{Process: consume.Config{Handlers: consumetest.Handler(func(ctx context.Context, m outbox.Message) error {
		_, err := inbox.Handle(ctx, in, testGroup, m.ID, func(context.Context) error {
			handled.Add(m)
			return nil
		})
		return err
	})}})
	ordered(t, messages, handled.Await(t, len(messages)))
	awaitPending(t, broker, 0)
	running.Stop()
}
