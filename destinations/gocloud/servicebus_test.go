package gocloud_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/gocloud"
	"github.com/packfinderz/outbox/destinations/wire"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

// bus keeps what Azure's client is given. Service Bus cannot be had for a test: what can be seen
// is what it would be sent.
type bus struct {
	publisher *gocloud.Publisher
	mu        sync.Mutex
	taken     []*azservicebus.Message
	// answer is the service's, where it does not take a message.
	answer func(*azservicebus.Message) error
	// asked is its answer to a ping.
	asked error
}

func newBus(t *testing.T) *bus {
	t.Helper()
	b := &bus{}
	b.publisher = gocloud.NewOnBus(b.take, func(context.Context) error { return b.asked })
	t.Cleanup(func() {
		if err := b.publisher.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *bus) take(_ context.Context, message *azservicebus.Message) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.answer != nil {
		if err := b.answer(message); err != nil {
			return err
		}
	}
	b.taken = append(b.taken, message)
	return nil
}

func (b *bus) Publisher() outbox.Publisher { return b.publisher }

func (b *bus) Received(t testing.TB) []publishertest.Received {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []publishertest.Received
	for _, m := range b.taken {
		r := publishertest.Received{Payload: m.Body, Key: text(m.SessionID), ContentType: text(m.ContentType), Attributes: make(map[string]string)}
		for name, value := range m.ApplicationProperties {
			r.Attributes[name] = value.(string)
		}
		var err error
		if r.ID, err = uuid.Parse(r.Attributes[wire.EventID]); err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

func text(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

func TestServiceBus(t *testing.T) {
	t.Parallel()
	features := publishertest.Features{
		Attributes: true, Keys: true, ContentType: true, Binary: true,
		Poison: func(m *outbox.Message) { m.Payload = []byte("poison") },
	}
	publishertest.Run(t, features, func(t *testing.T) publishertest.Harness {
		t.Helper()
		b := newBus(t)
		b.answer = func(m *azservicebus.Message) error {
			if string(m.Body) == "poison" {
				return azservicebus.ErrMessageTooLarge
			}
			return nil
		}
		return b
	})
}

// The key is the session, which a message without a key does not have, and the id is what the
// service knows duplicates by: a replay has one of its own.
func TestServiceBusSession(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	messages := publishertest.Messages(4)
	messages[1].Key = ""
	messages[2].Key = strings.Repeat("k", 128)
	messages[3].ReplayedAt = messages[3].CreatedAt
	publishertest.Fates(t, publishertest.Publish(t, b.publisher, messages), make([]string, len(messages))...)
	sent := make(map[string]*azservicebus.Message)
	for _, m := range b.taken {
		sent[text(m.MessageID)] = m
	}
	for i := range messages {
		m := sent[messages[i].DuplicateID()]
		switch {
		case m == nil:
			t.Errorf("message %d was not sent with the id %s", i, messages[i].DuplicateID())
		case text(m.SessionID) != messages[i].Key || messages[i].Key == "" && m.SessionID != nil:
			t.Errorf("message %d is of session %q, want %q", i, text(m.SessionID), messages[i].Key)
		}
	}
}

// Every answer of the service has its class, for a message and for a ping.
func TestServiceBusClasses(t *testing.T) {
	t.Parallel()
	amqpError := func(condition amqp.ErrCond) error { return &amqp.Error{Condition: condition} }
	for _, test := range []struct {
		answer             error
		fate, ping, topics string
	}{
		{azservicebus.ErrMessageTooLarge, "rejected", "rejected", "rejected"},
		{amqpError(amqp.ErrCondMessageSizeExceeded), "rejected", "rejected", "rejected"},
		{&azservicebus.Error{Code: azservicebus.CodeConnectionLost}, "away", "away", "away"},
		{&azservicebus.Error{Code: azservicebus.CodeClosed}, "away", "away", "away"},
		{amqpError(amqp.ErrCondConnectionForced), "away", "away", "away"},
		{&azservicebus.Error{Code: azservicebus.CodeUnauthorizedAccess}, "topic missing", "misconfigured", "topic missing"},
		{&azservicebus.Error{Code: azservicebus.CodeNotFound}, "topic missing", "misconfigured", "topic missing"},
		{&amqp.LinkError{RemoteErr: &amqp.Error{Condition: amqp.ErrCondNotFound}}, "topic missing", "misconfigured", "topic missing"},
		{amqpError("com.microsoft:entity-disabled"), "topic missing", "misconfigured", "topic missing"},
		{amqpError(amqp.ErrCondResourceLimitExceeded), "topic away", "away", "topic away"},
		{amqpError("com.microsoft:server-busy"), "topic away", "away", "topic away"},
		{&azservicebus.Error{Code: azservicebus.CodeTimeout}, "silence", "silence", "silence"},
		{amqpError("com.microsoft:timeout"), "silence", "silence", "silence"},
		{amqpError(amqp.ErrCondInternalError), "unclear", "unclear", "unclear"},
		{errors.New("something else"), "unclear", "unclear", "unclear"},
	} {
		b := newBus(t)
		messages := publishertest.Messages(3)
		messages[1].Key = messages[0].Key
		b.answer = func(m *azservicebus.Message) error {
			if text(m.SessionID) == messages[0].Key {
				return test.answer
			}
			return nil
		}
		publishertest.Fates(t, publishertest.Publish(t, b.publisher, messages), test.fate, "waits", "")
		b.asked = test.answer
		publishertest.Fates(t, []error{b.publisher.Ping(t.Context()), b.publisher.PingTopic(t.Context(), "orders")}, test.ping, test.topics)
	}
}

// A service that is away is noticed.
func TestServiceBusAway(t *testing.T) {
	t.Setenv("SERVICEBUS_CONNECTION_STRING", "Endpoint=sb://127.0.0.1:1/;SharedAccessKeyName=n;SharedAccessKey=s3cret")
	publisher := open(t, "azuresb://orders")
	messages := publishertest.Messages(2)
	messages[1].Key = strings.Repeat("k", 129)
	errs := publishertest.Publish(t, publisher, messages)
	publishertest.Fates(t, errs, "away", "rejected")
	wantNoSecret(t, errs[0])
	publishertest.Fates(t, []error{publisher.Ping(t.Context()), publisher.PingTopic(t.Context(), "orders")}, "away", "away")
	if outbox.ReasonOf(errs[1]) != outbox.ReasonRejected {
		t.Errorf("the reason is %s", outbox.ReasonOf(errs[1]))
	}
}
