package redis_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/brokers/redis"
	"github.com/packfinderz/outbox/brokers/redis/redistest"
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
	if config.Config, err = redis.ParseURL(url); err != nil {
		t.Fatal(err)
	}
	config.Create = true
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
