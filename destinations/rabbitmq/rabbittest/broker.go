package rabbittest

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/packfinderz/outbox/destinations/wire"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

// Broker is a vhost of a RabbitMQ server of the test's own.
type Broker struct {
	server *server
	vhost  string

	mu       sync.Mutex
	received map[string][]publishertest.Received // by queue
}

// New starts a server that ends with the test, with the durable queue publishertest.Topic ready. It
// takes some seconds; tests that can share a server take a Vhost each. The settings are lines of
// rabbitmq.conf.
func New(t testing.TB, settings ...string) *Broker {
	t.Helper()
	return newBroker(t, newServer(t, settings))
}

// Vhost is another broker on the same server, which it shares nothing else with.
func (b *Broker) Vhost(t testing.TB) *Broker {
	t.Helper()
	return newBroker(t, b.server)
}

func newBroker(t testing.TB, server *server) *Broker {
	t.Helper()
	b := &Broker{server: server, vhost: "test" + strconv.Itoa(int(server.vhosts.Add(1))), received: make(map[string][]publishertest.Received)}
	b.Eval(t, fmt.Sprintf(`rabbit_vhost:add(<<"%s">>, <<"test">>)`, b.vhost))
	b.Permit(t, "guest", ".*", ".*")
	b.Declare(t, publishertest.Topic, nil)
	return b
}

// URL returns the destination for outbox relay --to.
func (b *Broker) URL() string { return "amqp://" + b.Address() + "/" + b.vhost }

// Address is the server's host:port.
func (b *Broker) Address() string { return "127.0.0.1:" + strconv.Itoa(b.server.port) }

// VhostName is the name of the vhost.
func (b *Broker) VhostName() string { return b.vhost }

// Stop kills the server, with all its vhosts.
func (b *Broker) Stop(t testing.TB) {
	t.Helper()
	b.server.node.Kill()
}

// Start starts the server again, with the data it had.
func (b *Broker) Start(t testing.TB) {
	t.Helper()
	b.server.start(t)
}

// Eval runs an Erlang expression in the server, whose value must be ok.
func (b *Broker) Eval(t testing.TB, expression string) {
	t.Helper()
	if err := b.server.shell.eval(expression); err != nil {
		t.Fatal(err)
	}
}

// Holds runs an Erlang expression in the server, and reports whether its value is ok.
func (b *Broker) Holds(expression string) bool { return b.server.shell.eval(expression) == nil }

// Permit lets a user configure and write what matches the patterns, and read everything.
func (b *Broker) Permit(t testing.TB, user, configure, write string) {
	t.Helper()
	b.Eval(t, fmt.Sprintf(`rabbit_auth_backend_internal:set_permissions(<<"%s">>, <<"%s">>, <<"%s">>, <<"%s">>, <<".*">>, <<"test">>)`,
		user, b.vhost, configure, write))
}

// Do opens a channel for all that a test wants to do besides.
func (b *Broker) Do(t testing.TB, do func(*amqp.Channel) error) {
	t.Helper()
	conn, err := amqp.Dial("amqp://guest:guest@" + b.Address() + "/" + b.vhost)
	if err != nil {
		t.Fatal(fmt.Errorf("connecting to the test's RabbitMQ: %w", err))
	}
	channel, err := conn.Channel()
	if err == nil {
		err = do(channel)
	}
	if err != nil {
		t.Error(err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

// Declare makes a durable queue, which outlives a Stop.
func (b *Broker) Declare(t testing.TB, queue string, arguments amqp.Table) {
	t.Helper()
	b.Do(t, func(channel *amqp.Channel) error {
		_, err := channel.QueueDeclare(queue, true, false, false, false, arguments)
		return err
	})
	// The server writes down that there is a queue some time after it has said so.
	b.Eval(t, "mnesia:sync_log()")
}

// Received is all that has arrived in the queue publishertest.Topic, in order. It takes the messages
// out of the queue and keeps them.
func (b *Broker) Received(t testing.TB) []publishertest.Received {
	t.Helper()
	return b.ReceivedIn(t, publishertest.Topic)
}

// ReceivedIn is all that has arrived in a queue, in order.
func (b *Broker) ReceivedIn(t testing.TB, queue string) []publishertest.Received {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.Do(t, func(channel *amqp.Channel) error {
		state, err := channel.QueueDeclarePassive(queue, true, false, false, false, nil)
		if err != nil || state.Messages == 0 {
			return err
		}
		deliveries, err := channel.Consume(queue, "reader", true, false, false, false, nil)
		if err != nil {
			return err
		}
		read := 0
		for delivery := range deliveries {
			b.received[queue] = append(b.received[queue], received(t, queue, &delivery))
			if read++; read == state.Messages {
				// What is on its way by now comes before the end of the deliveries.
				if err := channel.Cancel("reader", false); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return append([]publishertest.Received(nil), b.received[queue]...)
}

func received(t testing.TB, queue string, delivery *amqp.Delivery) publishertest.Received {
	t.Helper()
	id, err := uuid.Parse(delivery.MessageId)
	if err != nil {
		t.Error(fmt.Errorf("a message's id: %w", err))
	}
	if delivery.DeliveryMode != amqp.Persistent || delivery.Timestamp.Before(time.Unix(0, 0)) {
		t.Errorf("message %s is not persistent, or has no time: %d, %s", id, delivery.DeliveryMode, delivery.Timestamp)
	}
	r := publishertest.Received{ID: id, Payload: delivery.Body, Topic: queue, ContentType: delivery.ContentType, Attributes: make(map[string]string)}
	for name, value := range delivery.Headers {
		text, ok := value.(string)
		if !ok {
			t.Errorf("the header %s is a %T", name, value)
		}
		r.Attributes[name] = text
	}
	r.Key = r.Attributes[wire.EventKey]
	delete(r.Attributes, wire.EventKey)
	return r
}
