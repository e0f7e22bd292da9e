package kafka_test

import (
	"testing"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/brokers/kafka/kafkatest"
	"github.com/packfinderz/outbox/publishertest"
)

// TestCheckTopics asks before anything is published.
func TestCheckTopics(t *testing.T) {
	t.Parallel()
	broker := kafkatest.New(t)
	publisher := kafkatest.Open(t, broker.URL())
	check := func(topics ...string) error { return publisher.CheckTopics(t.Context(), topics...) }
	if err := check(publishertest.Topic); err != nil {
		t.Errorf("a topic that is there: %v", err)
	}
	publishertest.Fails(t, check(publishertest.Topic, "invoices"), outbox.ClassRetryable, "invoices", "?create=true")
	publishertest.Fails(t, check("a b"), outbox.ClassTerminal, `"a b" cannot be one of Kafka's`)
	if err := kafkatest.Open(t, broker.URL()+"?create=true").CheckTopics(t.Context(), "invoices"); err != nil {
		t.Errorf("a topic that is made: %v", err)
	}
	if err := check(publishertest.Topic, "invoices"); err != nil {
		t.Errorf("a topic that was made: %v", err)
	}
	broker.Stop(t)
	publishertest.Fails(t, check("others"), outbox.ClassUnavailable)
	if err := publisher.Close(); err != nil {
		t.Fatal(err)
	}
	publishertest.Fails(t, check(publishertest.Topic), outbox.ClassUnavailable, "closed")
}
