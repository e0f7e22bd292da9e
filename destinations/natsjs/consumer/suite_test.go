package consumer_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/natsjs"
	"github.com/packfinderz/outbox/destinations/natsjs/consumer"
	"github.com/packfinderz/outbox/destinations/natsjs/natstest"
	"github.com/packfinderz/outbox/outboxtest/consumetest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

// consumers connects the suite to a server.
type consumers struct {
	broker  *natstest.Broker
	ordered bool
}

func (c consumers) Publish(t testing.TB, format string, messages []outbox.Message) {
	t.Helper()
	publishertest.Deliver(t, open(t, c.broker.URL()+"?format="+format), messages)
}

func (c consumers) Foreign(t testing.TB, payload string, attributes map[string]string) {
	t.Helper()
	header := nats.Header{}
	for name, value := range attributes {
		header[name] = []string{" " + value + " "} // as no event of ours could have it
	}
	if err := c.broker.Connect(t).PublishMsg(&nats.Msg{Subject: publishertest.Topic, Header: header, Data: []byte(payload)}); err != nil {
		t.Fatal(err)
	}
}

func (c consumers) Consumer(t testing.TB, options consumetest.Options) consumetest.Consumer {
	t.Helper()
	config := settings(t, c.broker.URL(), nil)
	// A message that came again only because of that would come too late.
	config.AckWait = time.Minute
	config.Process, config.Ordered = options.Process, c.ordered
	if options.DeadLetters {
		config = withDeadLetters(t, config, c.broker.URL())
	}
	made, err := consumer.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func (c consumers) Unsettled(t testing.TB) int {
	t.Helper()
	return unsettled(t, c.broker)
}

func (c consumers) Letters(t testing.TB) []publishertest.Received {
	t.Helper()
	return letters(t, c.broker)
}

func TestConsumers(t *testing.T) {
	t.Parallel()
	for name, ordered := range map[string]bool{"again by the stream": false, "again in place": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			consumetest.Run(t, func(t *testing.T) consumetest.Harness {
				t.Helper()
				return consumers{ordersAndDead(t), ordered}
			})
		})
	}
}

// untilKilled is the consumer that TestConsumerKilled kills.
func untilKilled(url string, handlers outbox.Publisher) (consumetest.Consumer, error) {
	config, err := natsjs.ParseURL(url + "?create=true&stream=" + natstest.Stream)
	if err != nil {
		return nil, err
	}
	process := consumetest.Quickly(handlers)
	process.Concurrency = 8
	return consumer.New(consumer.Config{
		Broker: config, Topics: []string{publishertest.Topic}, Durable: durable, AckWait: 2 * time.Second, Process: process,
	})
}

// TestConsumerKilled has the stream count the deliveries that a kill cut short.
func TestConsumerKilled(t *testing.T) {
	t.Parallel()
	const stands = 5
	broker := ordersAndDead(t)
	again := 0
	for _, m := range consumetest.Killed(t, broker.URL(), stands, consumers{broker: broker}) {
		if m.Attempt > 1 {
			again++
		}
	}
	if again < stands {
		t.Errorf("%d events came again; %d were in the killed one's hands", again, stands)
	}
}
