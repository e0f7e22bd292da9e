package kafka_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/brokers/kafka"
	"github.com/packfinderz/outbox/brokers/kafka/kafkatest"
	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/publishertest"
)

// consumerProcess makes the test's program a consumer of the cluster that it names.
const consumerProcess = "OUTBOX_TEST_CONSUMER"

// consumeUntilKilled handles the events of even aggregates, stands still at the others, and says
// so.
func consumeUntilKilled(url string) int {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // it ends when the test's process does
		os.Exit(1)
	}()
	var mu sync.Mutex
	say := func(word string, m *outbox.Message) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Println(word, m.ID)
	}
	config, err := kafka.ParseURL(url)
	if err == nil {
		var consumer *kafka.Consumer
		consumer, err = kafka.NewConsumer(kafka.ConsumerConfig{
			Config: config, Group: group, Topics: []string{publishertest.Topic}, SessionTimeout: 2 * time.Second, Concurrency: 8,
			Process: consume.Config{Handlers: handler(func(_ context.Context, m outbox.Message) error {
				if strings.ContainsAny(m.AggregateID, "13579") {
					say("stands", &m)
					select {}
				}
				say("handled", &m)
				return nil
			})},
		})
		if err == nil {
			err = consumer.Run(context.Background())
		}
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// TestConsumerKilled kills a consumer in the middle of some events. They come again, and so do those
// that it never began.
func TestConsumerKilled(t *testing.T) {
	t.Parallel()
	broker := cluster(t)
	sent := events(200, 10)
	delivered(t, open(t, broker.URL()), sent)
	program := exec.Command(os.Args[0])
	program.Env = append(os.Environ(), consumerProcess+"="+broker.URL())
	if _, err := program.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	output, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	handled, stood := make(map[uuid.UUID]bool), 0
	for lines := bufio.NewScanner(output); lines.Scan(); {
		word, id, _ := strings.Cut(lines.Text(), " ")
		if word == "handled" {
			handled[uuid.MustParse(id)] = true
		} else if stood++; stood == 1 {
			if err := program.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = program.Wait() // it was killed
	if stood < 1 {
		t.Fatalf("the consumer ended by itself; it stood at %d events", stood)
	}
	done := newRecord()
	start(t, settings(t, broker.URL(), handler(func(_ context.Context, m outbox.Message) error {
		done.add(m)
		return nil
	})))
	done.await(t, func(list []outbox.Message) bool {
		counts := ids(list)
		for _, m := range sent {
			if counts[m.ID] == 0 && !handled[m.ID] {
				return false
			}
		}
		return true
	})
}

// TestConsumerOutlivesCluster takes the cluster away in the middle, for longer than a session,
// and brings it back.
func TestConsumerOutlivesCluster(t *testing.T) {
	t.Parallel()
	broker, done := cluster(t), newRecord()
	sent := events(1000, 50)
	delivered(t, open(t, broker.URL()), sent)
	reached, resume := make(chan struct{}), make(chan struct{})
	var once sync.Once
	logged := newLog()
	config := settings(t, broker.URL(), handler(func(_ context.Context, m outbox.Message) error {
		if len(done.all()) >= 300 {
			once.Do(func() { close(reached) })
			<-resume
		}
		done.add(m)
		return nil
	}))
	config.SessionTimeout = time.Second
	config.Process.Logger = slog.New(slog.NewTextHandler(logged, nil))
	consumer := start(t, config)
	<-reached
	broker.Stop(t)
	close(resume) // what is in hand is handled, and cannot be committed
	logged.await(t, "cannot be reached; waiting")
	broker.Start(t)
	done.await(t, func(list []outbox.Message) bool { return len(ids(list)) == len(sent) })
	for limit := time.Now().Add(patience); uncommitted(t, broker) > 0 && time.Now().Before(limit); {
		<-time.After(50 * time.Millisecond) // until it is in the group again, and has seen them again
	}
	consumer.stop()
	if text := logged.String(); strings.Count(text, "cannot be reached; waiting") != 1 || !strings.Contains(text, "answers again") || uncommitted(t, broker) != 0 {
		t.Errorf("%d events are uncommitted; logged:\n%s", uncommitted(t, broker), text)
	}
}

// TestClusterAwayAtFirst starts a consumer before its cluster and its topic. It waits, says so
// once and keeps the password to itself.
func TestClusterAwayAtFirst(t *testing.T) {
	t.Parallel()
	const password = "hunter2-secret"
	broker := kafkatest.New(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "app", password))
	broker.Stop(t)
	done, logged := newRecord(), newLog()
	url := "kafka://app:" + password + "@" + broker.Addresses()
	config := settings(t, url, handler(func(_ context.Context, m outbox.Message) error {
		done.add(m)
		return nil
	}))
	config.Topics, config.SessionTimeout = []string{"invoices"}, 0
	config.Process.Logger = slog.New(slog.NewTextHandler(logged, nil))
	consumer := start(t, config)
	logged.await(t, "waiting")
	broker.Start(t)
	sent := events(5, 5)
	for i := range sent {
		sent[i].Topic = "invoices"
	}
	delivered(t, open(t, url+"?create=true"), sent)
	done.await(t, atLeast(5))
	consumer.stop()
	if text := logged.String(); strings.Contains(text, password) || strings.Count(text, "waiting") != 1 || !strings.Contains(text, "topics are there") {
		t.Errorf("logged:\n%s", text)
	}
}

// TestConsumerStops ends a consumer while it handles some events: it finishes and acknowledges those,
// and the next consumer has the rest, at once.
func TestConsumerStops(t *testing.T) {
	t.Parallel()
	broker, first, second := cluster(t), newRecord(), newRecord()
	sent := events(40, 40)
	delivered(t, open(t, broker.URL()), sent)
	begun, release := make(chan struct{}, len(sent)), make(chan struct{})
	config := settings(t, broker.URL(), handler(func(_ context.Context, m outbox.Message) error {
		begun <- struct{}{}
		<-release
		first.add(m)
		return nil
	}))
	config.Concurrency = 4
	consumer := start(t, config)
	for range 4 {
		<-begun
	}
	consumer.cancel()
	close(release)
	consumer.stop()
	if len(first.all()) != 4 || uncommitted(t, broker) != len(sent)-4 {
		t.Errorf("%d were handled, %d are uncommitted", len(first.all()), uncommitted(t, broker))
	}
	config.Process.Handlers = handler(func(_ context.Context, m outbox.Message) error {
		second.add(m)
		return nil
	})
	consumer = start(t, config)
	second.await(t, atLeast(len(sent)-4))
	consumer.stop()
	counts := ids(append(first.all(), second.all()...))
	for _, m := range sent {
		if counts[m.ID] != 1 {
			t.Errorf("event %s was handled %d times", m.Headers["n"], counts[m.ID])
		}
	}
}

// TestGraceIsOver has a handler that does not end until it is told: the event is not
// acknowledged.
func TestGraceIsOver(t *testing.T) {
	t.Parallel()
	broker := cluster(t)
	delivered(t, open(t, broker.URL()), events(1, 1))
	begun := make(chan struct{})
	config := settings(t, broker.URL(), handler(func(ctx context.Context, _ outbox.Message) error {
		close(begun)
		<-ctx.Done()
		return ctx.Err()
	}))
	config.Grace = 50 * time.Millisecond
	consumer := start(t, config)
	<-begun
	consumer.stop()
	if n := uncommitted(t, broker); n != 1 {
		t.Errorf("%d events are uncommitted", n)
	}
}

// TestGap has the first event of a partition not end while those behind it are handled. Nothing
// is committed: the next consumer begins with it.
func TestGap(t *testing.T) {
	t.Parallel()
	broker, first, second := cluster(t), newRecord(), newRecord()
	sent := events(10, 10)
	for i := range sent {
		sent[i].Topic = "single"
	}
	delivered(t, open(t, broker.URL()+"?create=true&partitions=1"), sent)
	config := settings(t, broker.URL(), handler(func(ctx context.Context, m outbox.Message) error {
		if m.ID == sent[0].ID {
			<-ctx.Done()
			return ctx.Err()
		}
		first.add(m)
		return nil
	}))
	config.Topics, config.Grace = []string{"single"}, 50*time.Millisecond
	consumer := start(t, config)
	first.await(t, atLeast(len(sent)-1))
	consumer.stop()
	config.Process.Handlers = handler(func(_ context.Context, m outbox.Message) error {
		second.add(m)
		return nil
	})
	start(t, config)
	if list := second.await(t, atLeast(len(sent))); ids(list)[sent[0].ID] != 1 {
		t.Errorf("the event that was not handled did not come again: %v", ids(list))
	}
}

// TestConsumerConfig refuses configurations that cannot work.
func TestConsumerConfig(t *testing.T) {
	t.Parallel()
	good := settings(t, "kafka://localhost", handler(func(context.Context, outbox.Message) error { return nil }))
	for words, spoil := range map[string]func(*kafka.ConsumerConfig){
		"no Group is named":   func(c *kafka.ConsumerConfig) { c.Group = "" },
		"no Topics are named": func(c *kafka.ConsumerConfig) { c.Topics = nil },
		"cannot be one of":    func(c *kafka.ConsumerConfig) { c.Topics = []string{"a b"} },
		"below zero":          func(c *kafka.ConsumerConfig) { c.Concurrency = -1 },
		"Handlers is missing": func(c *kafka.ConsumerConfig) { c.Process.Handlers = nil },
		"no broker is named":  func(c *kafka.ConsumerConfig) { c.Brokers = nil },
		"there is no SASL":    func(c *kafka.ConsumerConfig) { c.SASL, c.User = "x", "y" },
	} {
		config := good
		spoil(&config)
		if _, err := kafka.NewConsumer(config); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("got %v, want %s", err, words)
		}
	}
}

// TestConsumerCreates makes the topic that it reads.
func TestConsumerCreates(t *testing.T) {
	t.Parallel()
	broker, done := cluster(t), newRecord()
	config := settings(t, broker.URL()+"?create=true", handler(func(_ context.Context, m outbox.Message) error {
		done.add(m)
		return nil
	}))
	config.Topics = []string{"invoices"}
	start(t, config)
	sent := events(1, 1)
	sent[0].Topic = "invoices"
	delivered(t, open(t, broker.URL()+"?create=true"), sent)
	done.await(t, atLeast(1))
}
