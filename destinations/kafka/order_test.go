package kafka_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/kafka/kafkatest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

// TestOrder sends keys many times over, in one call and the next.
func TestOrder(t *testing.T) {
	t.Parallel()
	broker := kafkatest.New(t)
	publisher := kafkatest.Open(t, broker.URL()+"?batch-bytes=20000")
	var all []outbox.Message
	for range 2 {
		messages := publishertest.Messages(1500)
		for i := range messages {
			messages[i].Key = fmt.Sprintf("key%d", i*i%17)
		}
		publishertest.Deliver(t, publisher, messages)
		all = append(all, messages...)
	}
	wantOrder(t, broker, all)
}

// wantOrder fails unless exactly these have arrived, each key in order.
func wantOrder(t testing.TB, broker *kafkatest.Broker, messages []outbox.Message) {
	t.Helper()
	expected := make(map[string][]string)
	for _, m := range messages {
		expected[m.Key] = append(expected[m.Key], m.ID.String())
	}
	received := broker.Received(t)
	got := make(map[string][]string)
	for _, r := range received {
		got[r.Key] = append(got[r.Key], r.ID.String())
	}
	if len(received) != len(messages) {
		t.Errorf("%d messages arrived, want %d", len(received), len(messages))
	}
	for key, ids := range expected {
		if key != "" && strings.Join(got[key], " ") != strings.Join(ids, " ") {
			t.Errorf("key %q is\n%q, want\n%q", key, got[key], ids)
		}
	}
}

// TestRefusedTogether has a topic that takes less at once than is sent: only the message that
// is too large by itself is dead.
func TestRefusedTogether(t *testing.T) {
	t.Parallel()
	broker := kafkatest.New(t, kfake.BrokerConfigs(map[string]string{"message.max.bytes": "10000"}))
	publisher := kafkatest.Open(t, broker.URL()+"?compression=none")
	publishertest.Deliver(t, publisher, nil)
	warm := publishertest.Messages(8)
	publishertest.Deliver(t, publisher, warm)
	messages := publishertest.Messages(200)
	for i := range messages {
		messages[i].Key = fmt.Sprintf("key%d", i%9)
		messages[i].Payload = make([]byte, 1000)
	}
	const poison = 100
	messages[poison].Payload = make([]byte, 12_000)
	arriving := warm
	for i, err := range publishertest.Publish(t, publisher, messages) {
		switch {
		case i == poison:
			publishertest.Fails(t, err, outbox.ClassTerminal, "MESSAGE_TOO_LARGE")
			if outbox.ReasonOf(err) != outbox.ReasonRejected {
				t.Errorf("the reason is %q", outbox.ReasonOf(err))
			}
		case i > poison && messages[i].Key == messages[poison].Key:
			if !errors.Is(err, outbox.ErrNotAttempted) {
				t.Errorf("message %d: %v", i, err)
			}
		case err != nil:
			t.Errorf("message %d: %v", i, err)
		default:
			arriving = append(arriving, messages[i])
		}
	}
	wantOrder(t, broker, arriving)
}

// TestOneRecordBatch counts the requests for the messages of one key: nothing of a wave is
// sent before all of it is there.
func TestOneRecordBatch(t *testing.T) {
	t.Parallel()
	broker := kafkatest.New(t)
	publisher := kafkatest.Open(t, broker.URL())
	publishertest.Deliver(t, publisher, publishertest.Messages(8))
	requests := broker.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Observe: true, Count: -1})
	const batches = 5
	for range batches {
		messages := publishertest.Messages(1000)
		for i := range messages {
			messages[i].Key = "key"
		}
		publishertest.Deliver(t, publisher, messages)
	}
	if got := requests.Hits(); got != batches {
		t.Errorf("%d requests for %d batches", got, batches)
	}
}

// TestRefusedFirst has the cluster refuse the first record batch and take the rest. Nothing
// overtakes, whether the client knows the partitions yet or not.
func TestRefusedFirst(t *testing.T) {
	t.Parallel()
	for _, warm := range []bool{true, false} {
		t.Run(fmt.Sprintf("warm %t", warm), func(t *testing.T) {
			t.Parallel()
			broker := kafkatest.New(t)
			publisher := kafkatest.Open(t, broker.URL())
			var arriving []outbox.Message
			if warm {
				arriving = publishertest.Messages(8)
				publishertest.Deliver(t, publisher, arriving)
			}
			messages := publishertest.Messages(3000)
			for i := range messages {
				messages[i].Key = "key"
			}
			broker.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.InvalidRecord, Count: 1})
			failed := -1
			for i, err := range publishertest.Publish(t, publisher, messages) {
				switch {
				case err == nil && failed < 0:
					arriving = append(arriving, messages[i])
				case err == nil:
					t.Fatalf("message %d arrived although %d failed", i, failed)
				case failed < 0:
					failed = i
				case !errors.Is(err, outbox.ErrNotAttempted):
					t.Fatalf("message %d after the failed %d: %v", i, failed, err)
				}
			}
			if warm && failed >= 0 {
				t.Errorf("message %d is said to be invalid", failed)
			}
			wantOrder(t, broker, arriving)
		})
	}
}
