package kafka_test

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/kafka"
	"github.com/packfinderz/outbox/destinations/kafka/kafkatest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
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
	publishertest.Fails(t, check(publishertest.Topic, "invoices"), outbox.ClassUnavailable, "invoices", "?create=true")
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

func TestUnknownTopic(t *testing.T) {
	t.Parallel()
	broker := kafkatest.New(t)
	publisher := kafkatest.Open(t, broker.URL())
	messages := publishertest.Messages(4)
	messages[0].Topic, messages[1].Topic, messages[2].Topic = "nobody-has-this", "", "no topic/at all"
	errs := publishertest.Publish(t, publisher, messages)
	publishertest.Away(t, errs[0], true, true, "nobody-has-this", "?create=true")
	publishertest.Fails(t, errs[1], outbox.ClassUnavailable, "--topic-default")
	publishertest.Fails(t, errs[2], outbox.ClassTerminal, "no topic/at all")
	if errs[3] != nil {
		t.Error(errs[3])
	}
}

// TestDeletedTopic deletes a topic that was used before. Other topics go on, and so does this one
// when it is made again.
func TestDeletedTopic(t *testing.T) {
	t.Parallel()
	broker := kafkatest.New(t)
	if err := broker.Cluster.CreateTopic("payments", 2, nil); err != nil {
		t.Fatal(err)
	}
	publisher := kafkatest.Open(t, broker.URL())
	messages := publishertest.Messages(20)
	for i := range messages {
		if i%2 == 1 {
			messages[i].Topic = "payments"
		}
	}
	publishertest.Deliver(t, publisher, messages)
	if err := broker.Cluster.DeleteTopic(publishertest.Topic); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for i, err := range publishertest.Publish(t, publisher, messages) {
			switch {
			case i%2 == 0:
				publishertest.Away(t, err, true, true, publishertest.Topic, "?create=true")
			case err != nil:
				t.Errorf("to the other topic: %v", err)
			}
		}
		publishertest.Away(t, publisher.PingTopic(t.Context(), publishertest.Topic), true, true, "?create=true")
		publishertest.Answers(t, publisher)
	}
	if err := broker.Cluster.CreateTopic(publishertest.Topic, 3, nil); err != nil {
		t.Fatal(err)
	}
	if err := publisher.PingTopic(t.Context(), publishertest.Topic); err != nil {
		t.Error(err)
	}
	publishertest.Deliver(t, publisher, messages)
	if got := len(broker.Received(t)); got != 10 {
		t.Errorf("%d messages arrived, want 10", got)
	}
}

// TestReplacedTopic has a topic deleted and made again while nobody looks.
func TestReplacedTopic(t *testing.T) {
	t.Parallel()
	broker := kafkatest.New(t)
	publisher := kafkatest.Open(t, broker.URL())
	publishertest.Deliver(t, publisher, publishertest.Messages(20))
	if err := errors.Join(broker.Cluster.DeleteTopic(publishertest.Topic), broker.Cluster.CreateTopic(publishertest.Topic, 3, nil)); err != nil {
		t.Fatal(err)
	}
	for _, err := range publishertest.Publish(t, publisher, publishertest.Messages(20)) {
		if err != nil {
			publishertest.Away(t, err, true, true)
		}
	}
	publishertest.Deliver(t, publisher, publishertest.Messages(20))
}

// TestTransientlyUnknown has a broker that does not know a topic for a while. The topic is the same
// afterwards, and takes no message for a repeat.
func TestTransientlyUnknown(t *testing.T) {
	t.Parallel()
	broker := kafkatest.New(t)
	publisher := kafkatest.Open(t, broker.URL())
	messages := publishertest.Messages(1)
	publishertest.Deliver(t, publisher, messages)
	fault := broker.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.UnknownTopicOrPartition, Count: -1})
	next := publishertest.Messages(1)
	publishertest.Away(t, publishertest.Publish(t, publisher, next)[0], true, true)
	fault.Remove()
	publishertest.Deliver(t, publisher, next)
	if got := len(broker.Received(t)); got != 2 {
		t.Errorf("%d messages arrived, want 2", got)
	}
}

// TestRights has a user who may look at a topic, but not write to it, until somebody allows it.
func TestRights(t *testing.T) {
	t.Parallel()
	topic := func(operation kmsg.ACLOperation) kfake.ACL {
		return kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: publishertest.Topic, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: operation, Allow: true}
	}
	broker := kafkatest.New(t, kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("PLAIN", "root", "s3cret"),
		kfake.User("PLAIN", "relay", "s3cret", topic(kmsg.ACLOperationDescribe),
			kfake.ACL{Resource: kmsg.ACLResourceTypeCluster, Name: "kafka-cluster", Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: kmsg.ACLOperationIdempotentWrite, Allow: true}))
	publisher := kafkatest.Open(t, "kafka://relay:s3cret@"+broker.Addresses())
	publishertest.Answers(t, publisher)
	publishertest.Away(t, publishertest.Publish(t, publisher, publishertest.Messages(1))[0], true, true, "allow this user")
	publishertest.Away(t, publisher.PingTopic(t.Context(), publishertest.Topic), true, true, "allow this user")
	publishertest.Away(t, publisher.PingTopic(t.Context(), "payments"), true, true) // it may not even know of it
	allow(t, "kafka://root:s3cret@"+broker.Addresses(), "User:relay", publishertest.Topic)
	if err := publisher.PingTopic(t.Context(), publishertest.Topic); err != nil {
		t.Error(err)
	}
	publishertest.Deliver(t, publisher, publishertest.Messages(2))
}

// allow lets a user write to a topic.
func allow(t testing.TB, url, user, topic string) {
	t.Helper()
	client, err := kgo.NewClient(clientOptions(t, url)...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	request := kmsg.NewPtrCreateACLsRequest()
	creation := kmsg.NewCreateACLsRequestCreation()
	creation.ResourceType, creation.ResourceName, creation.ResourcePatternType = kmsg.ACLResourceTypeTopic, topic, kmsg.ACLResourcePatternTypeLiteral
	creation.Principal, creation.Host, creation.Operation, creation.PermissionType = user, "*", kmsg.ACLOperationWrite, kmsg.ACLPermissionTypeAllow
	request.Creations = append(request.Creations, creation)
	response, err := request.RequestWith(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	if err := kerr.ErrorForCode(response.Results[0].ErrorCode); err != nil {
		t.Fatal(err)
	}
}

// clientOptions are for a client of one's own.
func clientOptions(t testing.TB, url string) []kgo.Opt {
	t.Helper()
	config, err := kafka.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	options, err := config.ClientOptions()
	if err != nil {
		t.Fatal(err)
	}
	return options
}
