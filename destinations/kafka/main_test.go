package kafka_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/kafka"
	"github.com/packfinderz/outbox/destinations/kafka/kafkatest"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var features = publishertest.Features{
	Attributes: true, Keys: true, Binary: true,
	Poison: func(m *outbox.Message) { m.Payload = make([]byte, 2<<20) },
}

func TestSuite(t *testing.T) {
	t.Parallel()
	publishertest.Run(t, features, func(t *testing.T) publishertest.Harness {
		t.Helper()
		broker := kafkatest.New(t)
		return publishertest.On(broker, kafkatest.Open(t, broker.URL()+"?compression=none"))
	})
}

// TestRealBroker runs the suite on the cluster that OUTBOX_TEST_KAFKA names, host:port, in
// topics of its own; otherwise on a cluster that is reached directly.
func TestRealBroker(t *testing.T) {
	t.Parallel()
	url := "kafka://" + os.Getenv("OUTBOX_TEST_KAFKA")
	if url == "kafka://" {
		served, stop, err := kafkatest.Serve()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
		url = served
	}
	publishertest.Run(t, features, func(t *testing.T) publishertest.Harness {
		t.Helper()
		topic := publishertest.Topic + "-" + uuid.NewString()
		return &renamed{kafkatest.Open(t, url+"?create=true&partitions=3&compression=none"), topic, strings.Split(strings.TrimPrefix(url, "kafka://"), ",")}
	})
}

// renamed publishes to another topic than the suite says.
type renamed struct {
	inner   *kafka.Publisher
	topic   string
	brokers []string
}

func (r *renamed) Publisher() outbox.Publisher { return r }

func (r *renamed) Publish(ctx context.Context, messages []outbox.Message) []error {
	renamed := make([]outbox.Message, len(messages))
	for i, m := range messages {
		m.Topic = r.topic
		renamed[i] = m
	}
	return r.inner.Publish(ctx, renamed)
}

func (r *renamed) Received(t testing.TB) []publishertest.Received {
	t.Helper()
	list, err := kafkatest.Read(r.topic, r.brokers...)
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		list[i].Topic = publishertest.Topic
	}
	return list
}

func (r *renamed) Ping(ctx context.Context) error { return r.inner.Ping(ctx) }

func (r *renamed) KeepsOrder() bool { return r.inner.KeepsOrder() }
