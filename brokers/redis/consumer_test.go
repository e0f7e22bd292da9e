package redis_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/brokers/redis"
	"github.com/packfinderz/outbox/brokers/redis/redistest"
	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/publishertest"
)

const testGroup = "billing"

// each is a handler of single messages.
type each func(ctx context.Context, message outbox.Message) error

func (e each) Publish(ctx context.Context, messages []outbox.Message) []error {
	errs := make([]error, len(messages))
	for i := range messages {
		errs[i] = e(ctx, messages[i])
	}
	return errs
}

// seen keeps the messages that handlers were given.
type seen struct {
	mu   sync.Mutex
	list []outbox.Message
	more chan struct{}
}

func newSeen() *seen { return &seen{more: make(chan struct{}, 1)} }

func (s *seen) add(message outbox.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, message)
	select {
	case s.more <- struct{}{}:
	default:
	}
}

func (s *seen) all() []outbox.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list)
}

// await waits until so many messages were handled.
func (s *seen) await(t testing.TB, n int) []outbox.Message {
	t.Helper()
	deadline := time.After(patience)
	for {
		if list := s.all(); len(list) >= n {
			return list
		}
		select {
		case <-s.more:
		case <-deadline:
			t.Fatalf("%d messages were handled, want %d", len(s.all()), n)
		}
	}
}

// start runs a consumer until stop, or the end of the test.
func start(t testing.TB, broker *redistest.Broker, config redis.ConsumerConfig) (stop func()) {
	t.Helper()
	return startAt(t, broker.URL(), config)
}

func startAt(t testing.TB, url string, config redis.ConsumerConfig) (stop func()) {
	t.Helper()
	var err error
	if config.Config, err = redis.ParseURL(url + "?create=true"); err != nil {
		t.Fatal(err)
	}
	if config.Topic == "" {
		config.Topic = publishertest.Topic
	}
	config.Group = testGroup
	if config.Process.Logger == nil {
		config.Process.Logger = slog.New(slog.DiscardHandler)
	}
	if config.Process.Retry.Base == 0 {
		config.Process.Retry = outbox.RetryPolicy{Base: 20 * time.Millisecond, Max: 50 * time.Millisecond}
	}
	consumer, err := redis.NewConsumer(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- consumer.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// keyed are messages of some keys in turn.
func keyed(n, keys int) []outbox.Message {
	messages := publishertest.Messages(n)
	for i := range messages {
		messages[i].Key = "order/" + strconv.Itoa(i%keys)
	}
	return messages
}

func send(t testing.TB, broker *redistest.Broker, messages []outbox.Message) {
	t.Helper()
	if err := errors.Join(publish(t, open(t, broker.URL()), messages)...); err != nil {
		t.Fatal(err)
	}
}

// awaitPending waits until so many entries are delivered and not acknowledged.
func awaitPending(t testing.TB, broker *redistest.Broker, want int64) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		summary, err := broker.Client().XPending(context.Background(), publishertest.Topic, testGroup).Result()
		if err == nil && summary.Count == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%+v are pending (%v), want %d", summary, err, want)
		}
	}
}

// ordered fails unless each key's messages came in the order in which they were sent.
func ordered(t testing.TB, sent, got []outbox.Message) {
	t.Helper()
	byKey := func(list []outbox.Message) map[string][]string {
		keys := make(map[string][]string)
		for i := range list {
			keys[list[i].Key] = append(keys[list[i].Key], list[i].ID.String())
		}
		return keys
	}
	want, have := byKey(sent), byKey(got)
	for key, ids := range want {
		if !slices.Equal(ids, have[key]) {
			t.Errorf("key %s: %d messages, not the %d that were sent, in order", key, len(have[key]), len(ids))
		}
	}
}

func TestConsume(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"plain", "cloudevents"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			broker, messages, handled := redistest.New(t), keyed(2000, 50), newSeen()
			for i := range messages {
				if i%10 == 0 {
					messages[i].Key = "" // no order
				}
			}
			url := broker.URL()
			if format == "cloudevents" {
				url += "?format=cloudevents&source=/shop"
			}
			if err := errors.Join(publish(t, open(t, url), messages)...); err != nil {
				t.Fatal(err)
			}
			stop := start(t, broker, redis.ConsumerConfig{Process: consume.Config{Handlers: each(func(_ context.Context, m outbox.Message) error {
				handled.add(m)
				return nil
			})}})
			got := handled.await(t, len(messages))
			awaitPending(t, broker, 0)
			stop()
			if n := len(handled.all()); n != len(messages) {
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
	broker, messages, handled := redistest.New(t), keyed(30, 3), newSeen()
	bad, terminal := messages[3].ID, messages[4].ID
	broker.Create(t, "orders.dead")
	send(t, broker, messages)
	start(t, broker, redis.ConsumerConfig{Process: consume.Config{
		MaxDeliveries: 3, DeadLetters: open(t, broker.URL()), DeadLetterTopic: "orders.dead",
		Handlers: each(func(_ context.Context, m outbox.Message) error {
			handled.add(m)
			switch m.ID {
			case bad:
				panic("the effect failed")
			case terminal:
				return outbox.Terminal(errors.New("never"))
			}
			return nil
		}),
	}})
	got := handled.await(t, len(messages)+2)
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
		bad.String():      {"max_deliveries", "it panicked: the effect failed", "orders", "3"},
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
	broker, handled := redistest.New(t), newSeen()
	send(t, broker, publishertest.Messages(1))
	start(t, broker, redis.ConsumerConfig{Process: consume.Config{Handlers: each(func(_ context.Context, m outbox.Message) error {
		handled.add(m)
		return outbox.Terminal(errors.New("never"))
	})}})
	for i, m := range handled.await(t, 20) {
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
	start(t, broker, redis.ConsumerConfig{Process: consume.Config{
		DeadLetters: open(t, broker.URL()), DeadLetterTopic: "dead",
		Handlers: each(func(context.Context, outbox.Message) error { t.Error("it was handled"); return nil }),
	}})
	for broker.Client().XLen(t.Context(), "dead").Val() < 3 {
		time.Sleep(5 * time.Millisecond)
	}
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

// TestConsumeMissingGroup waits for a group that it may not make, and says so once.
func TestConsumeMissingGroup(t *testing.T) {
	t.Parallel()
	broker, handled := redistest.New(t), newSeen()
	send(t, broker, publishertest.Messages(1))
	config, err := redis.ParseURL(broker.URL())
	if err != nil {
		t.Fatal(err)
	}
	var log syncBuffer
	consumer, err := redis.NewConsumer(redis.ConsumerConfig{Config: config, Topic: publishertest.Topic, Group: testGroup, Process: consume.Config{
		Logger:   textLogger(&log),
		Handlers: each(func(_ context.Context, m outbox.Message) error { handled.add(m); return nil }),
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- consumer.Run(ctx) }()
	for !strings.Contains(log.String(), "?create=true") {
		time.Sleep(5 * time.Millisecond)
	}
	time.Sleep(500 * time.Millisecond) // some more tries
	if text := log.String(); strings.Count(text, "\n") != 1 {
		t.Errorf("it logged %s", text)
	}
	if err := broker.Client().XGroupCreate(t.Context(), publishertest.Topic, testGroup, "0").Err(); err != nil {
		t.Fatal(err)
	}
	handled.await(t, 1)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// syncBuffer is a buffer that may be read while it is written.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func textLogger(to *syncBuffer) *slog.Logger { return slog.New(slog.NewTextHandler(to, nil)) }

func TestConsumerConfig(t *testing.T) {
	t.Parallel()
	where := redis.Config{Addresses: []string{"127.0.0.1:1"}}
	handlers := consume.Config{Handlers: each(func(context.Context, outbox.Message) error { return nil })}
	for words, config := range map[string]redis.ConsumerConfig{
		"no address":          {Topic: "a", Group: "b", Process: handlers},
		"Topic and Group":     {Config: where, Topic: "a", Process: handlers},
		"cannot be negative":  {Config: where, Topic: "a", Group: "b", Concurrency: -1, Process: handlers},
		"MinIdle is 1ms":      {Config: where, Topic: "a", Group: "b", MinIdle: time.Millisecond, Process: handlers},
		"Handlers is missing": {Config: where, Topic: "a", Group: "b"},
	} {
		if _, err := redis.NewConsumer(config); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%v, want %q", err, words)
		}
	}
}
