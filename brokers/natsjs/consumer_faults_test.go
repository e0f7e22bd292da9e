package natsjs_test

import (
	"bufio"
	"context"
	"errors"
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
	"github.com/nats-io/nats.go/jetstream"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/brokers/natsjs"
	"github.com/packfinderz/outbox/brokers/natsjs/natstest"
	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/publishertest"
)

// consumerProcess makes the test's program a consumer of the server that it names.
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
	config, err := natsjs.ParseURL(url + "?create=true&stream=" + natstest.Stream)
	if err == nil {
		var consumer *natsjs.Consumer
		consumer, err = natsjs.NewConsumer(natsjs.ConsumerConfig{
			Config: config, Durable: durable, Subjects: []string{publishertest.Topic}, AckWait: 2 * time.Second, Concurrency: 8,
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
	broker := ordersAndDead(t)
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
		} else if stood++; stood == 5 {
			if err := program.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = program.Wait() // it was killed
	if stood < 5 {
		t.Fatalf("the consumer ended by itself; it stood at %d events", stood)
	}
	done := newRecord()
	start(t, settings(t, broker.URL(), handler(func(_ context.Context, m outbox.Message) error {
		done.add(m)
		return nil
	})))
	list := done.await(t, func(list []outbox.Message) bool {
		counts := ids(list)
		for _, m := range sent {
			if counts[m.ID] == 0 && !handled[m.ID] {
				return false
			}
		}
		return true
	})
	again := 0
	for _, m := range list {
		if m.Attempt > 1 {
			again++
		}
	}
	if again < stood {
		t.Errorf("%d events came again; %d were in the killed one's hands", again, stood)
	}
}

// TestConsumerOutlivesServer kills the server in the middle, and starts it again.
func TestConsumerOutlivesServer(t *testing.T) {
	t.Parallel()
	broker, done := ordersAndDead(t), newRecord()
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
	config.Process.Logger = slog.New(slog.NewTextHandler(logged, nil))
	consumer := start(t, config)
	<-reached
	broker.Stop(t)
	close(resume) // what is in hand is handled, and cannot be acknowledged
	logged.await(t, "waiting")
	broker.Start(t)
	done.await(t, func(list []outbox.Message) bool { return len(ids(list)) == len(sent) })
	consumer.stop()
	if text := logged.String(); strings.Count(text, "no messages can be read; waiting") != 1 || !strings.Contains(text, "can be read again") {
		t.Errorf("logged:\n%s", text)
	}
}

// TestServerAwayAtFirst starts a consumer before its server. It waits, says so once and keeps
// the password to itself.
func TestServerAwayAtFirst(t *testing.T) {
	t.Parallel()
	const password = "hunter2-secret"
	broker := natstest.Bare(t, natstest.Settings{User: "app", Password: password, Config: `authorization { user: app, password: "` + password + `" }`})
	broker.Stop(t)
	done := newRecord()
	logged := newLog()
	config := settings(t, broker.URL(), handler(func(_ context.Context, m outbox.Message) error {
		done.add(m)
		return nil
	}))
	config.Process.Logger = slog.New(slog.NewTextHandler(logged, nil))
	consumer := start(t, config)
	logged.await(t, "waiting")
	broker.Start(t)
	logged.await(t, "can be read again")
	delivered(t, open(t, broker.URL()), events(5, 5))
	done.await(t, atLeast(5))
	consumer.stop()
	if text := logged.String(); strings.Contains(text, password) || strings.Count(text, "waiting") != 1 {
		t.Errorf("logged:\n%s", text)
	}
}

// TestConsumerStops ends a consumer while it handles some events: it finishes and acknowledges those,
// and the next consumer has the rest, at once.
func TestConsumerStops(t *testing.T) {
	t.Parallel()
	broker, first, second := ordersAndDead(t), newRecord(), newRecord()
	sent := events(40, 40)
	delivered(t, open(t, broker.URL()), sent)
	begun, release := make(chan struct{}, len(sent)), make(chan struct{})
	config := settings(t, broker.URL(), handler(func(_ context.Context, m outbox.Message) error {
		begun <- struct{}{}
		<-release
		first.add(m)
		return nil
	}))
	config.Concurrency, config.AckWait = 4, time.Minute
	consumer := start(t, config)
	for range 4 {
		<-begun
	}
	consumer.cancel()
	close(release)
	consumer.stop()
	if len(first.all()) != 4 || unsettled(t, broker) != len(sent)-4 {
		t.Errorf("%d were handled, %d are unsettled", len(first.all()), unsettled(t, broker))
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
	broker := ordersAndDead(t)
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
	if n := unsettled(t, broker); n != 1 {
		t.Errorf("%d events are unsettled", n)
	}
}

// TestUnfitConsumer refuses durable consumers by which messages would be lost, and configurations that
// cannot work.
func TestUnfitConsumer(t *testing.T) {
	t.Parallel()
	broker := ordersAndDead(t)
	js := jetStream(t, broker)
	nothing := handler(func(context.Context, outbox.Message) error { return errors.New("never called") })
	for name, test := range map[string]struct {
		durable jetstream.ConsumerConfig
		dead    bool
		want    string
	}{
		"few":      {jetstream.ConsumerConfig{MaxDeliver: 3, AckPolicy: jetstream.AckExplicitPolicy}, true, "after 3 deliveries, before it is a dead letter (MaxDeliveries 3)"},
		"limited":  {jetstream.ConsumerConfig{MaxDeliver: 9, AckPolicy: jetstream.AckExplicitPolicy}, false, "there are no dead letters"},
		"unacked":  {jetstream.ConsumerConfig{AckPolicy: jetstream.AckNonePolicy}, true, "ack policy must be explicit"},
		"all":      {jetstream.ConsumerConfig{AckPolicy: jetstream.AckAllPolicy}, true, "ack policy must be explicit"},
		"missing":  {want: "stream ORDERS has no durable consumer missing"},
		"missing2": {want: "let Create do it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.durable.AckPolicy != 0 || test.durable.MaxDeliver != 0 || test.dead {
				test.durable.Durable = name
				if _, err := js.CreateConsumer(t.Context(), natstest.Stream, test.durable); err != nil {
					t.Fatal(err)
				}
			}
			config := settings(t, broker.URL(), nothing)
			if test.dead {
				config = withDeadLetters(t, config, broker.URL())
			}
			config.Durable, config.Create = name, false
			consumer, err := natsjs.NewConsumer(config)
			if err != nil {
				t.Fatal(err)
			}
			if err := consumer.Run(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
	good := settings(t, broker.URL(), nothing)
	for words, spoil := range map[string]func(*natsjs.ConsumerConfig){
		"no Stream is named":  func(c *natsjs.ConsumerConfig) { c.Stream = "" },
		"no Durable is named": func(c *natsjs.ConsumerConfig) { c.Durable = "" },
		"cannot be the name":  func(c *natsjs.ConsumerConfig) { c.Durable = "a.b" },
		"below zero":          func(c *natsjs.ConsumerConfig) { c.Concurrency = -1 },
		"Handlers is missing": func(c *natsjs.ConsumerConfig) { c.Process.Handlers = nil },
		"no server is named":  func(c *natsjs.ConsumerConfig) { c.Servers = nil },
		"go together":         func(c *natsjs.ConsumerConfig) { c.Process.DeadLetterTopic = "x" },
	} {
		config := good
		spoil(&config)
		if _, err := natsjs.NewConsumer(config); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("got %v, want %s", err, words)
		}
	}
}
