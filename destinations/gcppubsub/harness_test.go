package gcppubsub_test

import (
	"sync/atomic"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/gcppubsub/pubsubtest"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// ofKeys makes a message for each key.
func ofKeys(keys ...string) []outbox.Message {
	messages := publishertest.Messages(len(keys))
	for i, key := range keys {
		messages[i].Key = key
	}
	return messages
}

// wantPayloads compares what has arrived, in order.
func wantPayloads(t *testing.T, broker *pubsubtest.Broker, messages ...outbox.Message) {
	t.Helper()
	received := broker.Received(t)
	if len(received) != len(messages) {
		t.Fatalf("%d messages have arrived, want %d", len(received), len(messages))
	}
	for i := range messages {
		if received[i].ID != messages[i].ID {
			t.Errorf("message %d is %s, want %s", i, received[i].Payload, messages[i].Payload)
		}
	}
}

// onPublish is a reactor to publish requests; it answers those for which it gives an error.
type onPublish func(*pubsubpb.PublishRequest) error

func (f onPublish) React(request any) (bool, any, error) {
	err := f(request.(*pubsubpb.PublishRequest))
	return err != nil, &pubsubpb.PublishResponse{}, err
}

func reacting(f onPublish) pstest.ServerReactorOption {
	return pstest.ServerReactorOption{FuncName: "Publish", Reactor: f}
}

// onGetTopic is a reactor to questions for a topic, which answers none of them.
type onGetTopic func()

func (f onGetTopic) React(any) (bool, any, error) {
	f()
	return false, nil, nil
}

// once gives err for the first request that is asked about, and nil then.
func once(err error) func() error {
	var done atomic.Bool
	return func() error {
		if done.Swap(true) {
			return nil
		}
		return err
	}
}
