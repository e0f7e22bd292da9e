package natsjs_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/brokers/natsjs"
	"github.com/packfinderz/outbox/brokers/natsjs/natstest"
	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/publishertest"
)

const (
	durable = "billing"
	// deadTopic is a subject of the same stream, which is where dead letters are lost most easily.
	deadTopic = "orders.dead"
)

// handler is one function for all events.
type handler func(ctx context.Context, m outbox.Message) error

func (h handler) Publish(ctx context.Context, messages []outbox.Message) []error {
	errs := make([]error, len(messages))
	for i := range messages {
		errs[i] = h(ctx, messages[i])
	}
	return errs
}

// record has what was handled, in order, and can be waited for.
type record struct {
	mu      sync.Mutex
	list    []outbox.Message
	changed chan struct{}
}

func newRecord() *record { return &record{changed: make(chan struct{}, 1)} }

func (r *record) add(m outbox.Message) {
	r.mu.Lock()
	r.list = append(r.list, m)
	r.mu.Unlock()
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

func (r *record) all() []outbox.Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

// await waits until there is enough.
func (r *record) await(t testing.TB, enough func([]outbox.Message) bool) []outbox.Message {
	t.Helper()
	limit := time.After(2 * patience)
	for {
		list := r.all()
		if enough(list) {
			return list
		}
		select {
		case <-r.changed:
		case <-limit:
			t.Fatalf("only %d messages were handled", len(list))
		}
	}
}

func atLeast(n int) func([]outbox.Message) bool {
	return func(list []outbox.Message) bool { return len(list) >= n }
}

// ids counts the messages by event.
func ids(list []outbox.Message) map[uuid.UUID]int {
	counts := make(map[uuid.UUID]int)
	for _, m := range list {
		counts[m.ID]++
	}
	return counts
}

// events makes n events of some aggregates.
func events(n, aggregates int) []outbox.Message {
	list := make([]outbox.Message, n)
	for i := range list {
		aggregate := fmt.Sprint(i % aggregates)
		list[i] = outbox.Message{Event: outbox.Event{
			ID: uuid.New(), Topic: publishertest.Topic, Type: "order_created", AggregateType: "order", AggregateID: aggregate,
			Key: "order/" + aggregate, Payload: fmt.Appendf(nil, `{"n": %d}`, i), Headers: map[string]string{"n": fmt.Sprint(i)},
		}, CreatedAt: time.Now()}
	}
	return list
}

// ordersAndDead is a server whose stream has the orders and their dead letters.
func ordersAndDead(t testing.TB) *natstest.Broker {
	t.Helper()
	broker := natstest.New(t)
	js := jetStream(t, broker)
	if _, err := js.UpdateStream(t.Context(), jetstream.StreamConfig{
		Name: natstest.Stream, Subjects: []string{publishertest.Topic, deadTopic}, Storage: jetstream.FileStorage,
	}); err != nil {
		t.Fatal(err)
	}
	return broker
}

func jetStream(t testing.TB, broker *natstest.Broker) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(broker.Connect(t))
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// settings are of a consumer of the orders that makes its durable consumer itself.
func settings(t testing.TB, url string, handlers outbox.Publisher) natsjs.ConsumerConfig {
	t.Helper()
	config, err := natsjs.ParseURL(url + "?create=true&stream=" + natstest.Stream)
	if err != nil {
		t.Fatal(err)
	}
	return natsjs.ConsumerConfig{
		Config: config, Durable: durable, Subjects: []string{publishertest.Topic}, AckWait: 2 * time.Second,
		Process: consume.Config{
			Handlers: handlers, MaxDeliveries: 3, Retry: outbox.RetryPolicy{Base: 10 * time.Millisecond, Max: 20 * time.Millisecond},
			Logger: slog.New(slog.DiscardHandler),
		},
	}
}

// withDeadLetters adds dead letters to the settings.
func withDeadLetters(t testing.TB, config natsjs.ConsumerConfig, url string) natsjs.ConsumerConfig {
	t.Helper()
	config.Process.DeadLetters, config.Process.DeadLetterTopic = open(t, url), deadTopic
	return config
}

// consuming is a consumer that runs.
type consuming struct {
	t      testing.TB
	cancel context.CancelFunc
	done   chan error
}

// start runs a consumer until stop, or until the test ends.
func start(t testing.TB, config natsjs.ConsumerConfig) *consuming {
	t.Helper()
	consumer, err := natsjs.NewConsumer(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &consuming{t, cancel, make(chan error, 1)}
	go func() { c.done <- consumer.Run(ctx) }()
	t.Cleanup(c.stop)
	return c
}

func (c *consuming) stop() {
	c.t.Helper()
	c.cancel()
	select {
	case err := <-c.done:
		if err != nil {
			c.t.Errorf("run: %v", err)
		}
		c.done <- nil
	case <-time.After(patience):
		c.t.Fatal("the consumer does not stop")
	}
}

// letters are the dead letters in the stream.
func letters(t testing.TB, broker *natstest.Broker) (list []publishertest.Received) {
	t.Helper()
	for _, r := range broker.Received(t) {
		if r.Topic == deadTopic {
			list = append(list, r)
		}
	}
	return list
}

// reports passes on what became of deliveries.
type reports chan consume.Report

func (r reports) OnDelivery(report consume.Report) { r <- report }

// next waits for a delivery with this outcome.
func (r reports) next(t testing.TB, outcome consume.Outcome) {
	t.Helper()
	limit := time.After(patience)
	for {
		select {
		case report := <-r:
			if report.Outcome == outcome {
				return
			}
		case <-limit:
			t.Fatalf("nothing was %s", outcome)
		}
	}
}

// unsettled is how many messages the durable consumer has yet to hear about, or to deliver.
func unsettled(t testing.TB, broker *natstest.Broker) int {
	t.Helper()
	c, err := jetStream(t, broker).Consumer(t.Context(), natstest.Stream, durable)
	if err != nil {
		t.Fatal(err)
	}
	info := c.CachedInfo()
	return info.NumAckPending + int(info.NumPending)
}

// logLines is a log that can be waited for.
type logLines struct {
	mu      sync.Mutex
	text    strings.Builder
	changed chan struct{}
}

func newLog() *logLines { return &logLines{changed: make(chan struct{}, 1)} }

func (l *logLines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.changed <- struct{}{}:
	default:
	}
	return l.text.Write(line)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logLines) await(t testing.TB, words string) {
	t.Helper()
	limit := time.After(patience)
	for !strings.Contains(l.String(), words) {
		select {
		case <-l.changed:
		case <-limit:
			t.Fatalf("nothing was logged of %q:\n%s", words, l)
		}
	}
}
