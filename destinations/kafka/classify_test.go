package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/kafka"
	"github.com/packfinderz/outbox/destinations/kafka/kafkatest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

// TestDoubt asks of what the client tells whether the message may have been stored. Where it may, all of its record batch say
// so: they come again.
func TestDoubt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want bool
	}{
		{kerr.RequestTimedOut, true},
		{kerr.NotEnoughReplicasAfterAppend, true},
		{io.EOF, true},
		{context.DeadlineExceeded, true},
		// The connection was made again, and refused; what was sent on the last one is not known.
		{kerr.SaslAuthenticationFailed, true},
		{kerr.UnknownTopicOrPartition, false},
		{kerr.NotEnoughReplicas, false},
		{kerr.MessageTooLarge, false},
	} {
		if got := kafka.IsDoubt(c.err); got != c.want {
			t.Errorf("after %v a message may be stored: %t, want %t", c.err, got, c.want)
		}
	}
}

// TestFaults has the cluster answer with errors.
func TestFaults(t *testing.T) {
	t.Parallel()
	topicMissing := func(t testing.TB, err error) { t.Helper(); publishertest.Away(t, err, true, true) }
	topicAway := func(t testing.TB, err error) { t.Helper(); publishertest.Away(t, err, true, false) }
	for _, test := range []struct {
		err   *kerr.Error
		count int
		want  func(testing.TB, error)
	}{
		{kerr.InvalidRecord, -1, unclear},
		{kerr.InvalidTimestamp, -1, unclear},
		{kerr.RecordListTooLarge, -1, terminal},
		{kerr.InvalidRecord, 1, nil}, // something else in the record batch
		{kerr.UnknownServerError, -1, unclear},
		{kerr.UnknownServerError, 1, nil},
		{kerr.CorruptMessage, -1, unclear},
		{kerr.CorruptMessage, 1, nil},
		{kerr.TopicAuthorizationFailed, -1, topicMissing},
		{kerr.UnknownTopicOrPartition, -1, topicMissing},
		{kerr.UnknownTopicID, -1, topicMissing},
		{kerr.UnsupportedCompressionType, -1, topicMissing},
		{kerr.ClusterAuthorizationFailed, -1, func(t testing.TB, err error) { t.Helper(); publishertest.Away(t, err, false, true) }},
		{kerr.BrokerNotAvailable, -1, func(t testing.TB, err error) { t.Helper(); publishertest.Away(t, err, false, false) }},
		{kerr.NotEnoughReplicas, -1, topicAway},
		{kerr.NotEnoughReplicas, 1, nil},
		{kerr.NotLeaderForPartition, -1, topicAway},
		{kerr.NotLeaderForPartition, 1, nil},
		{kerr.KafkaStorageError, -1, topicAway},
		{kerr.ThrottlingQuotaExceeded, -1, topicAway},
	} {
		t.Run(fmt.Sprintf("%s %d", test.err.Message, test.count), func(t *testing.T) {
			t.Parallel()
			broker := kafkatest.New(t)
			publisher := kafkatest.Open(t, broker.URL())
			publishertest.Deliver(t, publisher, publishertest.Messages(10))
			fault := broker.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: test.err, Count: test.count})
			messages := publishertest.Messages(6)
			for i := range messages {
				messages[i].Key = fmt.Sprintf("key%d", i%2)
			}
			errs := publishertest.Publish(t, publisher, messages)
			fault.Remove()
			if test.want == nil {
				for _, err := range errs {
					if err != nil {
						t.Error(err)
					}
				}
				return
			}
			test.want(t, errs[0])
			publishertest.Fails(t, errs[0], outbox.Classify(errs[0]), test.err.Message)
			for _, err := range errs[2:] {
				if !errors.Is(err, outbox.ErrNotAttempted) {
					t.Errorf("after the first of its key: %v", err)
				}
			}
			publishertest.Deliver(t, publisher, messages)
		})
	}
}

func terminal(t testing.TB, err error) { t.Helper(); publishertest.Fails(t, err, outbox.ClassTerminal) }
func unclear(t testing.TB, err error)  { t.Helper(); publishertest.Fails(t, err, outbox.ClassUnclear) }

func TestAuthorization(t *testing.T) {
	t.Parallel()
	broker := kafkatest.New(t, kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-256", "relay", "s3cret/@word"),
		kfake.Superuser("SCRAM-SHA-512", "relay5", "s3cret"), kfake.Superuser("PLAIN", "relay1", "s3cret"))
	for user, sasl := range map[string]string{"relay:s3cret%2F%40word": "scram-sha-256", "relay5:s3cret": "scram-sha-512", "relay1:s3cret": "plain"} {
		publisher := kafkatest.Open(t, "kafka://"+user+"@"+broker.Addresses()+"?sasl="+sasl)
		publishertest.Answers(t, publisher) // to greet takes some computing
		publishertest.Deliver(t, publisher, publishertest.Messages(2))
	}
	// The cluster ends the connection of somebody whom it does not know; Kafka says why, as here.
	broker.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.SASLAuthenticate}, TopLevel: true, Err: kerr.SaslAuthenticationFailed, Count: -1})
	const wrong = "wr0ngpassw0rd"
	for url, setting := range map[string]bool{
		"kafka://relay:" + wrong + "@" + broker.Addresses() + "?sasl=scram-sha-256": true,
		"kafka://relay1:" + wrong + "@" + broker.Addresses():                        true,
		"kafka://" + broker.Addresses():                                             false, // the connection ends without a word
	} {
		publisher := kafkatest.Open(t, url)
		errs := publishertest.Publish(t, publisher, publishertest.Messages(1))
		for _, err := range append(errs, publisher.Ping(t.Context()), publisher.PingTopic(t.Context(), publishertest.Topic)) {
			publishertest.Away(t, err, false, setting)
			if strings.Contains(err.Error(), wrong) {
				t.Errorf("the error shows a secret: %v", err)
			}
		}
	}
}

// TestProducerID has the cluster refuse to let the relay begin, and then think better of it.
func TestProducerID(t *testing.T) {
	t.Parallel()
	for _, err := range []*kerr.Error{kerr.ClusterAuthorizationFailed, kerr.UnknownServerError} {
		t.Run(err.Message, func(t *testing.T) {
			t.Parallel()
			broker := kafkatest.New(t)
			publisher := kafkatest.Open(t, broker.URL())
			broker.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, TopLevel: true, Err: err})
			got := publishertest.Publish(t, publisher, publishertest.Messages(1))[0]
			if err == kerr.ClusterAuthorizationFailed {
				publishertest.Away(t, got, false, true, err.Message)
			} else {
				unclear(t, got)
			}
			publishertest.Deliver(t, publisher, publishertest.Messages(2))
		})
	}
}
