package rabbitmq_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/rabbitmq/rabbittest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

func testDeclaredOtherwise(t *testing.T, broker *rabbittest.Broker) {
	t.Helper()
	broker.Declare(t, "special", amqp.Table{"x-max-length": 10})
	messages := publishertest.Messages(1)
	messages[0].Topic = "special"
	if err := publishertest.Publish(t, open(t, broker.URL()+"?create=true"), messages)[0]; err != nil {
		t.Error(err)
	}
}

func testFullQueue(t *testing.T, broker *rabbittest.Broker) {
	t.Helper()
	broker.Declare(t, "small", amqp.Table{"x-max-length": 2, "x-overflow": "reject-publish"})
	messages := publishertest.Messages(2)
	messages = append(messages, publishertest.Messages(3)...)
	for i := range messages {
		messages[i].Topic = "small"
	}
	publisher := open(t, broker.URL())
	if err := errors.Join(publishertest.Publish(t, publisher, messages[:2])...); err != nil {
		t.Error(err)
	}
	messages[3].Topic = publishertest.Topic
	for i, err := range publishertest.Publish(t, publisher, messages[2:]) {
		if i != 1 {
			publishertest.Fates(t, []error{err}, "topic away")
			publishertest.Fails(t, err, outbox.ClassUnavailable, "the queue refused the message")
		} else if err != nil {
			t.Errorf("a message to another queue: %v", err)
		}
	}
	if n := len(broker.Received(t)); n != 1 {
		t.Errorf("%d messages arrived in the other queue, want 1", n)
	}
}

// testTooLarge has messages that only the server knows to be too large: it closes the channel over
// the heads of their neighbours, which arrive all the same.
func testTooLarge(t *testing.T, broker *rabbittest.Broker) {
	t.Helper()
	publisher := open(t, broker.URL())
	for range 2 {
		messages := publishertest.Messages(50)
		messages[20].Payload = make([]byte, 600_000)
		messages[30].Payload = make([]byte, 700_000)
		for i, err := range publishertest.Publish(t, publisher, messages) {
			if i == 20 || i == 30 {
				publishertest.Fails(t, err, outbox.ClassTerminal, "the limit is 500000")
			} else if err != nil {
				t.Errorf("message %d: %v", i, err)
			}
		}
		there := make(map[string]bool)
		for _, r := range broker.Received(t) {
			there[r.ID.String()] = true
		}
		for i := range messages {
			if there[messages[i].ID.String()] == (i == 20 || i == 30) {
				t.Errorf("message %d: arrived %t", i, there[messages[i].ID.String()])
			}
		}
	}
}

// testInvalid has a message that RabbitMQ finds to be wrong: it wants a list in the header CC.
func testInvalid(t *testing.T, broker *rabbittest.Broker) {
	t.Helper()
	messages := publishertest.Messages(20)
	messages[10].Headers["CC"] = "everybody"
	for i, err := range publishertest.Publish(t, open(t, broker.URL()), messages) {
		if i == 10 {
			publishertest.Fails(t, err, outbox.ClassTerminal, "CC")
		} else if err != nil {
			t.Errorf("message %d: %v", i, err)
		}
	}
	there := make(map[string]bool)
	for _, r := range broker.Received(t) {
		there[r.ID.String()] = true
	}
	if len(there) != 19 {
		t.Errorf("%d messages arrived, want 19", len(there))
	}
}

func testRejected(t *testing.T, broker *rabbittest.Broker) {
	t.Helper()
	messages := publishertest.Messages(6)
	long := strings.Repeat("x", 256)
	messages[0].Headers = map[string]string{long: ""}
	messages[1].Headers = map[string]string{"a": strings.Repeat("x", 130_000)}
	messages[2].Type = long
	messages[3].ContentType = long
	messages[4].Topic = long
	messages[5].Headers = map[string]string{long[1:]: strings.Repeat("x", 127_000)}
	errs := publishertest.Publish(t, open(t, broker.URL()), messages)
	for i, words := range []string{"the name of the header", "the headers have", "the type", "the content type", "the routing key"} {
		publishertest.Fails(t, errs[i], outbox.ClassTerminal, words)
	}
	if errs[5] != nil || len(broker.Received(t)) != 1 {
		t.Errorf("as much as AMQP can carry: %v; %d arrived", errs[5], len(broker.Received(t)))
	}
}

// testSlowBroker has a call end while the queue of a message stands still. All have one key: the
// first is confirmed before the second is sent.
func testSlowBroker(t *testing.T, broker *rabbittest.Broker) {
	t.Helper()
	broker.Declare(t, "slow", nil)
	// A function, so that the shell does not keep the variables.
	queue := func(do string) string {
		return fmt.Sprintf(`(fun() -> {ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"%s">>, queue, <<"slow">>)), P = amqqueue:get_pid(Q), %s end)()`,
			broker.VhostName(), do)
	}
	broker.Eval(t, queue("sys:suspend(P)"))
	publisher := open(t, broker.URL())
	t.Cleanup(func() { broker.Eval(t, queue("sys:resume(P)")) }) // before the publisher is closed, which waits for its calls
	messages := publishertest.Messages(3)
	for i := range messages {
		messages[i].Key = "a"
	}
	messages[1].Topic = "slow"
	errs := publishertest.Abandon(t, publisher, messages, func() {
		await.Until(t, "a message to wait for the queue", func() bool {
			return broker.Holds(queue(`{messages, Ms} = process_info(P, messages), [ok | _] = [ok || {'$gen_cast', M} <- Ms, element(1, M) =:= deliver], ok`))
		})
	})
	publishertest.Fates(t, errs[1:2], "silence")
	publishertest.Fails(t, errs[1], outbox.ClassUnclear, "no confirm of RabbitMQ in time")
	if errs[0] != nil || !errors.Is(errs[2], outbox.ErrNotAttempted) {
		t.Errorf("the others: %v, %v", errs[0], errs[2])
	}
	if err := publishertest.Publish(t, publisher, messages[:1])[0]; err != nil {
		t.Errorf("after it: %v", err)
	}
	// A ping of the topic gets no answer either, and ends with its time.
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	publishertest.Fates(t, []error{publishertest.Ends(t, func() error { return publisher.PingTopic(ctx, "slow") })}, "silence")
	wantPings(t, publisher, "", map[string]string{publishertest.Topic: ""})
}

func testNobodyThere(t *testing.T, _ *rabbittest.Broker) {
	t.Helper()
	publisher := open(t, "amqp://127.0.0.1:1")
	publishertest.Fails(t, publisher.Ping(t.Context()), outbox.ClassUnavailable, "refused")
	publishertest.Fails(t, publishertest.Publish(t, publisher, publishertest.Messages(1))[0], outbox.ClassUnavailable, "refused")
	if err := publisher.Close(); err != nil {
		t.Error(err)
	}
	publishertest.Fails(t, publisher.Ping(t.Context()), outbox.ClassUnavailable, "closed")
}
