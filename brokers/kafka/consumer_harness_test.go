package kafka_test

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
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/brokers/kafka"
	"github.com/packfinderz/outbox/brokers/kafka/kafkatest"
	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/publishertest"
)

const (
	group     = "billing"
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

// cluster is one whose groups are quick to miss a member.
func cluster(t testing.TB) *kafkatest.Broker {
	t.Helper()
	return kafkatest.New(t, kfake.GroupMinSessionTimeout(time.Second), kfake.SeedTopics(kafkatest.Partitions, publishertest.Topic, deadTopic))
}

// settings are of a consumer of the orders.
func settings(t testing.TB, url string, handlers outbox.Publisher) kafka.ConsumerConfig {
	t.Helper()
	config, err := kafka.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	return kafka.ConsumerConfig{
		Config: config, Group: group, Topics: []string{publishertest.Topic}, SessionTimeout: 3 * time.Second,
		Process: consume.Config{
			Handlers: handlers, MaxDeliveries: 3, Retry: outbox.RetryPolicy{Base: 10 * time.Millisecond, Max: 20 * time.Millisecond},
			Logger: slog.New(slog.DiscardHandler),
		},
	}
}

// withDeadLetters adds dead letters to the settings.
func withDeadLetters(t testing.TB, config kafka.ConsumerConfig, url string) kafka.ConsumerConfig {
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
func start(t testing.TB, config kafka.ConsumerConfig) *consuming {
	t.Helper()
	consumer, err := kafka.NewConsumer(config)
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

// uncommitted is how many records the group has yet to commit.
func uncommitted(t testing.TB, broker *kafkatest.Broker) int {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(broker.Addresses(), ",")...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ask := kmsg.NewPtrOffsetFetchRequest()
	ask.Group = group
	wanted := kmsg.NewOffsetFetchRequestGroup()
	wanted.Group = group
	ask.Groups = append(ask.Groups, wanted)
	answer, err := ask.RequestWith(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	left := len(broker.Received(t))
	for _, g := range answer.Groups {
		for _, topic := range g.Topics {
			for _, p := range topic.Partitions {
				left -= int(max(p.Offset, 0))
			}
		}
	}
	return left
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

// produce writes records as they are.
func produce(t testing.TB, broker *kafkatest.Broker, records ...*kgo.Record) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(broker.Addresses(), ",")...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}
