package gocloud_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"
	"gocloud.dev/pubsub"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/gocloud"
	"github.com/packfinderz/outbox/destinations/wire"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

const patience = 20 * time.Second

// The subscriptions of these tests may leave a read-ahead behind, which their Shutdown does
// not end; publishing leaves nothing.
func TestMain(m *testing.M) {
	pgtest.Main(m, goleak.IgnoreAnyFunction("gocloud.dev/pubsub.(*Subscription).Receive.func2"))
}

func open(t testing.TB, url string) *gocloud.Publisher {
	t.Helper()
	return publishertest.Open(t, url, gocloud.ParseURL, gocloud.New)
}

func wantText(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("the error is %v; it should say %q", err, text)
	}
}

// memory is a topic of the driver in memory, with a subscription.
type memory struct {
	publisher    *gocloud.Publisher
	topic        *pubsub.Topic
	subscription *pubsub.Subscription
	received     map[int]publishertest.Received
}

// place is a URL that no other test has: the driver keeps its topics for the whole program.
func place() string { return "mem://" + uuid.NewString() }

// subscribe has to come before what it receives is published.
func subscribe(t *testing.T, url string) *memory {
	t.Helper()
	topic, err := pubsub.OpenTopic(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	subscription, err := pubsub.OpenSubscription(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, end := range []func(context.Context) error{subscription.Shutdown, topic.Shutdown} {
			if err := end(context.Background()); err != nil {
				t.Error(err)
			}
		}
	})
	return &memory{topic: topic, subscription: subscription, received: make(map[int]publishertest.Received)}
}

func (m *memory) Publisher() outbox.Publisher { return m.publisher }

const marker = "marker"

// Received sends a marker. The driver numbers messages, so that the number of the marker
// tells how many were sent before; it hands them out in no order.
func (m *memory) Received(t testing.TB) []publishertest.Received {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := m.topic.Send(ctx, &pubsub.Message{Body: []byte(marker), Metadata: map[string]string{marker: ""}}); err != nil {
		t.Fatal(err)
	}
	for last := -1; last < 0 || len(m.received) <= last; {
		message, err := m.subscription.Receive(ctx)
		if err != nil {
			t.Fatal(err)
		}
		message.Ack()
		var number int
		if _, err := fmt.Sscanf(message.LoggableID, "msg #%d", &number); err != nil {
			t.Fatal(err)
		}
		id, _ := uuid.Parse(message.Metadata[wire.EventID]) // a marker has none
		m.received[number] = publishertest.Received{ID: id, Payload: message.Body, Attributes: message.Metadata}
		if _, ok := message.Metadata[marker]; ok {
			last = number
		}
	}
	var received []publishertest.Received
	for number := range len(m.received) {
		if _, ok := m.received[number].Attributes[marker]; !ok {
			received = append(received, m.received[number])
		}
	}
	return received
}
