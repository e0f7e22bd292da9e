package gcppubsub_test

import (
	"strings"
	"testing"

	apiv1 "cloud.google.com/go/pubsub/v2/apiv1"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/packfinderz/outbox/destinations/gcppubsub"
	"github.com/packfinderz/outbox/destinations/gcppubsub/pubsubtest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

// newClient is a client as a service has one.
func newClient(t *testing.T, broker *pubsubtest.Broker) *apiv1.TopicAdminClient {
	t.Helper()
	options, err := gcppubsub.Config{Project: pubsubtest.Project, Endpoint: broker.Endpoint(), Insecure: true}.ClientOptions()
	if err != nil {
		t.Fatal(err)
	}
	client, err := apiv1.NewTopicAdminClient(t.Context(), options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

// A publisher works on a client that is there already, and leaves it open.
func TestClientThatIsThere(t *testing.T) {
	t.Parallel()
	broker := pubsubtest.New(t)
	client := newClient(t, broker)
	publisher, err := gcppubsub.New(gcppubsub.Config{Project: pubsubtest.Project, Client: client})
	if err != nil {
		t.Fatal(err)
	}
	messages := ofKeys("k", "k", "k")
	publishertest.Fates(t, publishertest.Publish(t, publisher, messages), "", "", "")
	wantPayloads(t, broker, messages...)
	if err := publisher.Close(); err != nil {
		t.Error(err)
	}
	topic := pubsubtest.TopicPath(publishertest.Topic)
	if _, err := client.GetTopic(t.Context(), &pubsubpb.GetTopicRequest{Topic: topic}); err != nil {
		t.Errorf("the client after the publisher's end: %v", err)
	}
	_, err = gcppubsub.New(gcppubsub.Config{Project: pubsubtest.Project, Client: client, Credentials: "key.json"})
	if err == nil || !strings.Contains(err.Error(), "leave out Endpoint, Insecure and the credentials") {
		t.Errorf("a client and credentials: %v", err)
	}
}
