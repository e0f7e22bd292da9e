// Package pubsubtest is a Pub/Sub service that a test has to itself: Google's test server
// over gRPC, behind a connection that can be cut.
package pubsubtest

import (
	"path"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"
	"github.com/google/uuid"

	"github.com/packfinderz/outbox/destinations/gcppubsub"
	"github.com/packfinderz/outbox/destinations/wire"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
	"github.com/packfinderz/outbox/outboxtest/tcpproxy"
)

// Project is the project of every Broker.
const Project = "outbox-test"

// Broker is a server of its own. It keeps nothing on disk, so Stop cuts the connection to
// it and leaves it alive.
type Broker struct {
	// Server is the server itself, which answers also while the Broker is stopped.
	Server *pstest.Server
	proxy  *tcpproxy.Proxy
}

var _ publishertest.Broker = (*Broker)(nil)

// New starts a server with the topic publishertest.Topic, and ends it with the test.
// Reactors make it answer otherwise than it would, such as pstest.WithErrorInjection.
func New(t testing.TB, reactors ...pstest.ServerReactorOption) *Broker {
	t.Helper()
	server := pstest.NewServerWithAddress("127.0.0.1:0", reactors...)
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	b := &Broker{Server: server, proxy: tcpproxy.New(t, server.Addr)}
	b.CreateTopic(t, publishertest.Topic)
	return b
}

// Open returns a publisher for a destination, and closes it with the test.
func Open(t testing.TB, url string) *gcppubsub.Publisher {
	t.Helper()
	return publishertest.Open(t, url, gcppubsub.ParseURL, gcppubsub.New)
}

// URL is the destination.
func (b *Broker) URL() string {
	return "gcppubsub://" + Project + "?insecure=true&endpoint=" + b.Endpoint()
}

// Endpoint is where clients connect to, without TLS; the value for PUBSUB_EMULATOR_HOST.
func (b *Broker) Endpoint() string { return b.proxy.Address() }

// CreateTopic makes a topic.
func (b *Broker) CreateTopic(t testing.TB, topic string) {
	t.Helper()
	if _, err := b.Server.GServer.CreateTopic(t.Context(), &pubsubpb.Topic{Name: TopicPath(topic)}); err != nil {
		t.Fatalf("create topic %s: %v", topic, err)
	}
}

// Subscribe makes a subscription with the order of keys, for what is published to
// publishertest.Topic from now on, and gives its full name. The server goes through all
// messages that are waiting every 10 ms, so that a test which does not read them is quicker
// without it.
func (b *Broker) Subscribe(t testing.TB, name string) string {
	t.Helper()
	subscription := &pubsubpb.Subscription{
		Name: "projects/" + Project + "/subscriptions/" + name, Topic: TopicPath(publishertest.Topic),
		EnableMessageOrdering: true, AckDeadlineSeconds: 30,
	}
	if _, err := b.Server.GServer.CreateSubscription(t.Context(), subscription); err != nil {
		t.Fatalf("subscribe to %s: %v", publishertest.Topic, err)
	}
	return subscription.Name
}

// TopicPath is the full name of a topic.
func TopicPath(topic string) string { return "projects/" + Project + "/topics/" + topic }

// Received is what the server has taken for publishertest.Topic, in that order.
func (b *Broker) Received(testing.TB) []publishertest.Received {
	var received []publishertest.Received
	for _, m := range b.Server.Messages() {
		if m.Topic != TopicPath(publishertest.Topic) {
			continue
		}
		received = append(received, publishertest.Received{
			ID: eventID(m.Attributes), Payload: m.Data, Topic: path.Base(m.Topic), Key: m.OrderingKey, Attributes: m.Attributes,
		})
	}
	return received
}

// eventID is zero for a message that an event was not published as.
func eventID(attributes map[string]string) uuid.UUID {
	for _, name := range []string{wire.EventID, "ce-id"} {
		if id, err := uuid.Parse(attributes[name]); err == nil {
			return id
		}
	}
	return uuid.Nil
}

// Stop breaks all connections and refuses new ones.
func (b *Broker) Stop(testing.TB) { b.proxy.Cut() }

// Start takes connections again.
func (b *Broker) Start(t testing.TB) {
	t.Helper()
	b.proxy.Restore(t)
}

// Proxy is what stands between clients and the server.
func (b *Broker) Proxy() *tcpproxy.Proxy { return b.proxy }

// Throttle makes the connections as slow as so many bytes per second; 0 lifts it.
func (b *Broker) Throttle(bytesPerSecond int) { b.proxy.Throttle(bytesPerSecond) }
