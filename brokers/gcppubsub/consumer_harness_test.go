package gcppubsub_test

import (
	"bytes"
	"context"
	"log/slog"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/pstest"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/brokers/gcppubsub"
	"github.com/packfinderz/outbox/brokers/gcppubsub/pubsubtest"
	"github.com/packfinderz/outbox/consume"
)

const (
	subscription = "billing"
	deadTopic    = "orders-dead"
)

// handle is a set of handlers that is a function.
type handle func(ctx context.Context, message outbox.Message) error

func (h handle) Publish(ctx context.Context, messages []outbox.Message) []error {
	errs := make([]error, len(messages))
	for i := range messages {
		errs[i] = h(ctx, messages[i])
	}
	return errs
}

// seen collects what was handled.
type seen struct {
	mu   sync.Mutex
	list []outbox.Message
}

func (s *seen) add(message outbox.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, message)
}

func (s *seen) all() []outbox.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]outbox.Message(nil), s.list...)
}

// byID is how often each event was handled.
func (s *seen) byID() map[string]int {
	times := make(map[string]int)
	for _, message := range s.all() {
		times[message.ID.String()]++
	}
	return times
}

// subscribed starts a server with a subscription and a topic for dead letters.
func subscribed(t *testing.T, reactors ...pstest.ServerReactorOption) *pubsubtest.Broker {
	t.Helper()
	broker := pubsubtest.New(t, reactors...)
	broker.Subscribe(t, subscription)
	broker.CreateTopic(t, deadTopic)
	return broker
}

// consumerConfig is one for the subscription, with dead letters and short waits.
func consumerConfig(t *testing.T, url string, handlers outbox.Publisher) gcppubsub.ConsumerConfig {
	t.Helper()
	config, err := gcppubsub.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	return gcppubsub.ConsumerConfig{
		Config: config, Subscription: subscription, AckDeadline: 10 * time.Second,
		Process: consume.Config{
			Handlers: handlers, DeadLetters: open(t, url), DeadLetterTopic: deadTopic, MaxDeliveries: 3,
			Retry: outbox.RetryPolicy{Base: 20 * time.Millisecond, Max: 100 * time.Millisecond}, Logger: slog.New(slog.DiscardHandler),
		},
	}
}

// running is a consumer that runs.
type running struct {
	t      *testing.T
	cancel context.CancelFunc
	ended  chan error
}

// run starts a consumer, which does not outlive the test.
func run(t *testing.T, config gcppubsub.ConsumerConfig) *running {
	t.Helper()
	consumer, err := gcppubsub.NewConsumer(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{t: t, cancel: cancel, ended: make(chan error, 1)}
	go func() { r.ended <- consumer.Run(ctx) }()
	t.Cleanup(r.stop)
	return r
}

// stop stops the consumer, and can be called again.
func (r *running) stop() {
	r.t.Helper()
	r.cancel()
	select {
	case err := <-r.ended:
		if err != nil {
			r.t.Errorf("the consumer ended with %v", err)
		}
		r.ended <- nil
	case <-time.After(patience):
		r.t.Fatal("the consumer does not end")
	}
}

// await waits until something holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// acked is how many messages of a topic the server need not deliver any more.
func acked(broker *pubsubtest.Broker, topic string) (n int) {
	for _, m := range broker.Server.Messages() {
		if path.Base(m.Topic) == topic && m.Acks > 0 {
			n++
		}
	}
	return n
}

// inHand is how many messages a consumer has told the server that it has.
func inHand(broker *pubsubtest.Broker) (n int) {
	for _, m := range broker.Server.Messages() {
		if len(m.Modacks) > 0 {
			n++
		}
	}
	return n
}

// letters are the dead letters.
func letters(broker *pubsubtest.Broker) (list []*pstest.Message) {
	for _, m := range broker.Server.Messages() {
		if path.Base(m.Topic) == deadTopic {
			list = append(list, m)
		}
	}
	return list
}

func publishAll(t *testing.T, broker *pubsubtest.Broker, messages []outbox.Message) {
	t.Helper()
	for i, err := range publish(t, open(t, broker.URL()), messages) {
		if err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
	}
}

// journal is a log to read in.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(line)
}

func (j *journal) logger() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }

// count is how often some words are in it.
func (j *journal) count(words string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Count(j.text.String(), words)
}
