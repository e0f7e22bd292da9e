package rabbitmq_test

import (
	"errors"
	"fmt"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/rabbitmq"
	"github.com/packfinderz/outbox/destinations/rabbitmq/rabbittest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

func testUnknownQueue(t *testing.T, broker *rabbittest.Broker) {
	t.Helper()
	messages := publishertest.Messages(3)
	messages[0].Topic, messages[1].Topic = "payments", ""
	publisher, creating := open(t, broker.URL()), open(t, broker.URL()+"?create=true")
	errs := publishertest.Publish(t, publisher, messages)
	publishertest.Fates(t, errs, "topic missing", "topic missing", "")
	publishertest.Fails(t, errs[0], outbox.ClassUnavailable, `unknown queue "payments"`, "?create=true")
	publishertest.Fails(t, errs[1], outbox.ClassUnavailable, "--topic-default")
	wantPings(t, publisher, "", map[string]string{"payments": "topic missing", publishertest.Topic: ""})
	wantPings(t, creating, "", map[string]string{"payments": ""})
	publishertest.Fates(t, publishertest.Publish(t, creating, messages[:1]), "")
	wantPings(t, publisher, "", map[string]string{"payments": ""})
	if n := len(broker.ReceivedIn(t, "payments")); n != 1 {
		t.Errorf("%d messages arrived, want 1", n)
	}
}

// wantPings compares what a ping and pings of topics answer, as publishertest.Fates.
func wantPings(t *testing.T, publisher *rabbitmq.Publisher, destination string, topics map[string]string) {
	t.Helper()
	publishertest.Fates(t, []error{publisher.Ping(t.Context())}, destination)
	for topic, want := range topics {
		publishertest.Fates(t, []error{publisher.PingTopic(t.Context(), topic)}, want)
	}
}

// testDeletedQueue has a queue go that was declared by the publisher: it is declared again.
func testDeletedQueue(t *testing.T, broker *rabbittest.Broker) {
	t.Helper()
	messages := publishertest.Messages(1)
	messages[0].Topic = "payments"
	publisher := open(t, broker.URL()+"?create=true")
	publishertest.Fates(t, publishertest.Publish(t, publisher, messages), "")
	broker.Do(t, func(channel *amqp.Channel) error {
		_, err := channel.QueueDelete("payments", false, false, false)
		return err
	})
	publishertest.Fates(t, publishertest.Publish(t, publisher, messages), "topic missing")
	publishertest.Fates(t, publishertest.Publish(t, publisher, messages), "")
}

// testUndeclarable has a queue that may not be declared: the others do not wait for it.
func testUndeclarable(t *testing.T, broker *rabbittest.Broker) {
	t.Helper()
	broker.Permit(t, "guest", "^[^p]", ".*")
	messages := publishertest.Messages(4)
	messages[1].Topic, messages[2].Topic = "payments", "bills"
	errs := publishertest.Publish(t, open(t, broker.URL()+"?create=true"), messages)
	publishertest.Fates(t, errs, "", "topic missing", "", "")
	publishertest.Fails(t, errs[1], outbox.ClassUnavailable, `declaring "payments"`)
}

func testUnknownExchange(t *testing.T, broker *rabbittest.Broker) {
	t.Helper()
	messages := publishertest.Messages(10)
	missing := open(t, broker.URL()+"?exchange=events")
	for _, err := range publishertest.Publish(t, missing, messages) {
		publishertest.Fates(t, []error{err}, "topic missing")
		publishertest.Fails(t, err, outbox.ClassUnavailable, `unknown exchange "events"`)
	}
	wantPings(t, missing, "misconfigured", map[string]string{publishertest.Topic: "topic missing"})
	publishertest.Fails(t, missing.Ping(t.Context()), outbox.ClassUnavailable, "?create=true")
	publisher := open(t, broker.URL()+"?exchange=events&create=true&routing-key={topic}.{type}.{key}")
	for _, err := range publishertest.Publish(t, publisher, messages) {
		publishertest.Fates(t, []error{err}, "topic missing")
		publishertest.Fails(t, err, outbox.ClassUnavailable, `no queue is bound to the exchange "events" for the routing key "orders.order_created.order/`)
	}
	broker.Do(t, func(channel *amqp.Channel) error {
		return channel.QueueBind(publishertest.Topic, "orders.order_created.*", "events", false, nil)
	})
	publishertest.Deliver(t, publisher, messages)
	wantPings(t, publisher, "", map[string]string{publishertest.Topic: ""})
	if n := len(broker.Received(t)); n != len(messages) {
		t.Errorf("%d messages arrived, want %d: a ping leaves nothing", n, len(messages))
	}
	// It is made again when it is gone.
	broker.Do(t, func(channel *amqp.Channel) error { return channel.ExchangeDelete("events", false, false) })
	publishertest.Fates(t, publishertest.Publish(t, publisher, messages[:1]), "topic missing")
	publishertest.Fates(t, publishertest.Publish(t, publisher, messages[:1]), "topic missing") // by nobody bound
	wantPings(t, missing, "", nil)
}

// testRoutingKeyRefused has a user who may write with some routing keys only: RabbitMQ closes the
// channel over the heads of the others, which arrive all the same.
func testRoutingKeyRefused(t *testing.T, broker *rabbittest.Broker) {
	t.Helper()
	broker.Declare(t, "payments", nil)
	broker.Do(t, func(channel *amqp.Channel) error {
		err := channel.ExchangeDeclare("events", amqp.ExchangeTopic, true, false, false, false, nil)
		for _, queue := range []string{publishertest.Topic, "payments"} {
			err = errors.Join(err, channel.QueueBind(queue, queue, "events", false, nil))
		}
		return err
	})
	grant := func(pattern string) {
		broker.Eval(t, fmt.Sprintf(`rabbit_auth_backend_internal:set_topic_permissions(<<"guest">>, <<"%s">>, <<"events">>, <<"%s">>, <<".*">>, <<"test">>)`,
			broker.VhostName(), pattern))
	}
	grant("^orders$")
	publisher := open(t, broker.URL()+"?exchange=events")
	messages, fates := publishertest.Messages(20), make([]string, 20)
	for i := range messages {
		if i%3 == 1 {
			messages[i].Topic, fates[i] = "payments", "topic missing"
		}
	}
	errs := publishertest.Publish(t, publisher, messages)
	publishertest.Fates(t, errs, fates...)
	publishertest.Fails(t, errs[1], outbox.ClassUnavailable, "guest may not write")
	wantPings(t, publisher, "", map[string]string{"payments": "topic missing", publishertest.Topic: ""})
	grant(".*")
	wantPings(t, publisher, "", map[string]string{"payments": ""})
	publishertest.Deliver(t, publisher, messages[1:2])
}

// testReturned has one message of a batch come back.
func testReturned(t *testing.T, broker *rabbittest.Broker) {
	t.Helper()
	messages := publishertest.Messages(100)
	messages[50].Topic = "nowhere"
	messages[50].Key, messages[70].Key = "a", "a"
	for i, err := range publishertest.Publish(t, open(t, broker.URL()), messages) {
		switch i {
		case 50:
			publishertest.Fates(t, []error{err}, "topic missing")
			publishertest.Fails(t, err, outbox.ClassUnavailable, "NO_ROUTE")
		case 70:
			if !errors.Is(err, outbox.ErrNotAttempted) {
				t.Errorf("the next message of its key: %v", err)
			}
		default:
			if err != nil {
				t.Errorf("message %d: %v", i, err)
			}
		}
	}
	if n := len(broker.Received(t)); n != 98 {
		t.Errorf("%d messages arrived, want 98", n)
	}
}

func testNoPermission(t *testing.T, broker *rabbittest.Broker) {
	t.Helper()
	publisher := open(t, broker.URL())
	broker.Permit(t, "guest", ".*", "^$")
	for _, err := range publishertest.Publish(t, publisher, publishertest.Messages(2)) {
		publishertest.Fates(t, []error{err}, "topic missing")
		publishertest.Fails(t, err, outbox.ClassUnavailable, "ACCESS_REFUSED")
	}
	wantPings(t, publisher, "misconfigured", map[string]string{publishertest.Topic: "topic missing"})
	broker.Permit(t, "guest", ".*", ".*")
	wantPings(t, publisher, "", map[string]string{publishertest.Topic: ""})
	publishertest.Deliver(t, publisher, publishertest.Messages(2))
}
