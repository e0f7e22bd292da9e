package consumer_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/natsjs/consumer"
	"github.com/packfinderz/outbox/destinations/natsjs/natstest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/consumetest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

// TestConsumerOutlivesServer kills the server in the middle, and starts it again.
func TestConsumerOutlivesServer(t *testing.T) {
	t.Parallel()
	broker, gate := ordersAndDead(t), consumetest.NewGate(300)
	sent := consumetest.Events(1000, 50)
	publishertest.Deliver(t, open(t, broker.URL()), sent)
	logged := consumetest.NewLog()
	config := settings(t, broker.URL(), consumetest.Handler(gate.Handle))
	config.Process.Logger = logged.Logger()
	running := start(t, config)
	<-gate.Reached
	broker.Stop(t)
	gate.Open() // what is in hand is handled, and cannot be acknowledged
	logged.Await(t, "waiting")
	broker.Start(t)
	gate.AwaitThat(t, func(list []outbox.Message) bool { return len(consumetest.Counts(list)) == len(sent) })
	running.Stop()
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
	done := consumetest.NewRecord()
	logged := consumetest.NewLog()
	config := settings(t, broker.URL(), consumetest.Handler(done.Handle))
	config.Process.Logger = logged.Logger()
	running := start(t, config)
	logged.Await(t, "waiting")
	broker.Start(t)
	logged.Await(t, "can be read again")
	publishertest.Deliver(t, open(t, broker.URL()), consumetest.Events(5, 5))
	done.Await(t, 5)
	running.Stop()
	if text := logged.String(); strings.Contains(text, password) || strings.Count(text, "waiting") != 1 {
		t.Errorf("logged:\n%s", text)
	}
}

// TestUnfitConsumer refuses durable consumers by which messages would be lost, and configurations that
// cannot work.
func TestUnfitConsumer(t *testing.T) {
	t.Parallel()
	broker := ordersAndDead(t)
	js := jetStream(t, broker)
	nothing := consumetest.Handler(func(context.Context, outbox.Message) error { return errors.New("never called") })
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
		"missing2": {want: "?create=true"},
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
			config.Durable, config.Broker.Create = name, false
			c, err := consumer.New(config)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
	good := settings(t, broker.URL(), nothing)
	for words, spoil := range map[string]func(*consumer.Config){
		"name one of them":    func(c *consumer.Config) { c.Broker.Stream, c.Topics = "", nil },
		"Durable is missing":  func(c *consumer.Config) { c.Durable = "" },
		"cannot be the name":  func(c *consumer.Config) { c.Durable = "a.b" },
		"Concurrency is -1":   func(c *consumer.Config) { c.Process.Concurrency = -1 },
		"Handlers is missing": func(c *consumer.Config) { c.Process.Handlers = nil },
		"no address is named": func(c *consumer.Config) { c.Broker.Addresses = nil },
		"go together":         func(c *consumer.Config) { c.Process.DeadLetterTopic = "x" },
	} {
		config := good
		spoil(&config)
		if _, err := consumer.New(config); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("got %v, want %s", err, words)
		}
	}
}

// TestCreates makes the stream and the durable consumer of a topic that no stream has, and publisher and
// consumer agree on the stream, whoever is first.
func TestCreates(t *testing.T) {
	t.Parallel()
	for name, publishFirst := range map[string]bool{"publisher first": true, "consumer first": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker, done := natstest.New(t), consumetest.NewRecord()
			config := settings(t, broker.URL(), consumetest.Handler(done.Handle))
			config.Broker.Stream, config.Broker.SubjectPrefix, config.Topics = "", "shop.", []string{"invoices.paid"}
			sent := consumetest.Events(1, 1)
			sent[0].Topic = "invoices.paid"
			deliver := func() {
				publishertest.Deliver(t, open(t, broker.URL()+"?create=true&subject-prefix=shop."), sent)
			}
			if publishFirst {
				deliver()
			}
			start(t, config)
			if !publishFirst {
				js := jetStream(t, broker)
				await.Until(t, "the consumer to be made", func() bool {
					_, err := js.Consumer(t.Context(), "shop_invoices_paid", durable)
					return err == nil
				})
				deliver()
			}
			if got := done.Await(t, 1)[0]; got.Topic != "invoices.paid" || got.ID != sent[0].ID {
				t.Errorf("handled %+v", got)
			}
		})
	}
}
