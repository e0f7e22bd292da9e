package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/brokers/kafka/kafkatest"
	"github.com/packfinderz/outbox/publishertest"
)

func TestUnknownTopic(t *testing.T) {
	t.Parallel()
	broker := kafkatest.New(t)
	publisher := kafkatest.Open(t, broker.URL())
	messages := publishertest.Messages(4)
	messages[0].Topic, messages[1].Topic, messages[2].Topic = "nobody-has-this", "", "no topic/at all"
	errs := publishertest.Publish(t, publisher, messages)
	publishertest.Fails(t, errs[0], outbox.ClassRetryable, "nobody-has-this", "?create=true")
	publishertest.Fails(t, errs[1], outbox.ClassRetryable, "--topic-default")
	publishertest.Fails(t, errs[2], outbox.ClassTerminal, "no topic/at all")
	if errs[3] != nil {
		t.Error(errs[3])
	}
}

// TestDeletedTopic deletes a topic that was used before.
func TestDeletedTopic(t *testing.T) {
	t.Parallel()
	broker := kafkatest.New(t)
	publisher := kafkatest.Open(t, broker.URL())
	publishertest.Deliver(t, publisher, publishertest.Messages(2))
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(broker.Addresses(), ",")...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	request := kmsg.NewPtrDeleteTopicsRequest()
	request.TopicNames = []string{publishertest.Topic}
	topic := kmsg.NewDeleteTopicsRequestTopic()
	topic.Topic = kmsg.StringPtr(publishertest.Topic)
	request.Topics = append(request.Topics, topic)
	if _, err := request.RequestWith(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		publishertest.Fails(t, publishertest.Publish(t, publisher, publishertest.Messages(1))[0], outbox.ClassRetryable, "?create=true")
	}
}

func TestCreate(t *testing.T) {
	t.Parallel()
	broker := kafkatest.New(t)
	publisher := kafkatest.Open(t, broker.URL()+"?create=true&partitions=5&replication=1")
	messages := publishertest.Messages(40)
	for i := range messages {
		messages[i].Topic = fmt.Sprintf("shop.topic%d", i%4)
	}
	publishertest.Deliver(t, publisher, messages)
	list, err := kafkatest.Read("shop.topic3", strings.Split(broker.Addresses(), ",")...)
	if err != nil || len(list) != 10 {
		t.Errorf("%d messages arrived (%v)", len(list), err)
	}
}

// TestFaults has the cluster answer with errors.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err   *kerr.Error
		count int
		class outbox.Class
		fine  bool
	}{
		{kerr.InvalidRecord, -1, outbox.ClassTerminal, false},
		{kerr.InvalidTimestamp, -1, outbox.ClassTerminal, false},
		{kerr.RecordListTooLarge, -1, outbox.ClassTerminal, false},
		{kerr.InvalidRecord, 1, 0, true}, // something else in the record batch
		{kerr.TopicAuthorizationFailed, -1, outbox.ClassRetryable, false},
		{kerr.ClusterAuthorizationFailed, -1, outbox.ClassUnavailable, false},
		{kerr.NotEnoughReplicas, -1, outbox.ClassRetryable, false},
		{kerr.NotEnoughReplicas, 1, 0, true},
		{kerr.NotLeaderForPartition, 1, 0, true},
		{kerr.ThrottlingQuotaExceeded, -1, outbox.ClassRetryable, false},
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
			if test.fine {
				for _, err := range errs {
					if err != nil {
						t.Error(err)
					}
				}
				return
			}
			publishertest.Fails(t, errs[0], test.class, test.err.Message)
			for _, err := range errs[2:] {
				if !errors.Is(err, outbox.ErrNotAttempted) {
					t.Errorf("after the first of its key: %v", err)
				}
			}
			publishertest.Deliver(t, publisher, messages)
		})
	}
}

func TestAuthorization(t *testing.T) {
	t.Parallel()
	broker := kafkatest.New(t, kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-256", "relay", "s3cret/@word"),
		kfake.Superuser("SCRAM-SHA-512", "relay5", "s3cret"), kfake.Superuser("PLAIN", "relay1", "s3cret"))
	for user, sasl := range map[string]string{"relay:s3cret%2F%40word": "scram-sha-256", "relay5:s3cret": "scram-sha-512", "relay1:s3cret": "plain"} {
		publisher := kafkatest.Open(t, "kafka://"+user+"@"+broker.Addresses()+"?sasl="+sasl)
		publishertest.Answers(t, publisher) // to greet takes some computing
		publishertest.Deliver(t, publisher, publishertest.Messages(2))
	}
	const wrong = "wr0ngpassw0rd"
	for _, url := range []string{
		"kafka://relay:" + wrong + "@" + broker.Addresses() + "?sasl=scram-sha-256",
		"kafka://relay1:" + wrong + "@" + broker.Addresses(),
		"kafka://" + broker.Addresses(),
	} {
		publisher := kafkatest.Open(t, url)
		for _, err := range append(publishertest.Publish(t, publisher, publishertest.Messages(1)), publisher.Ping(t.Context())) {
			publishertest.Fails(t, err, outbox.ClassUnavailable)
			if strings.Contains(err.Error(), wrong) {
				t.Errorf("the error shows a secret: %v", err)
			}
		}
	}
}

func TestAbsent(t *testing.T) {
	t.Parallel()
	broker := kafkatest.New(t)
	broker.Stop(t)
	publisher := kafkatest.Open(t, broker.URL())
	errs := publishertest.Publish(t, publisher, publishertest.Messages(2))
	publishertest.Fails(t, errs[0], outbox.ClassUnavailable)
	publishertest.Fails(t, publisher.Ping(t.Context()), outbox.ClassUnavailable)
	broker.Start(t)
	publishertest.Answers(t, publisher)
	publishertest.Deliver(t, publisher, publishertest.Messages(2))
}

// TestCut cuts the connections while batches are under way.
func TestCut(t *testing.T) {
	t.Parallel()
	broker := kafkatest.New(t)
	publishertest.Cut(t, broker, kafkatest.Open(t, broker.URL()))
}

// TestFlap breaks connections that come back at once: nobody need notice.
func TestFlap(t *testing.T) {
	t.Parallel()
	broker := kafkatest.New(t)
	publisher := kafkatest.Open(t, broker.URL())
	publishertest.Deliver(t, publisher, publishertest.Messages(10))
	broker.Stop(t)
	broker.Start(t)
	publishertest.Deliver(t, publisher, publishertest.Messages(10))
	if got := len(broker.Received(t)); got != 20 {
		t.Errorf("%d messages arrived, want 20", got)
	}
}

// hold has the cluster keep its answers to produce requests until release is called, and tells
// when the first came.
func hold(t testing.TB, broker *kafkatest.Broker) (came <-chan struct{}, release func()) {
	t.Helper()
	arrived, free := make(chan struct{}), make(chan struct{})
	first := sync.OnceFunc(func() { close(arrived) })
	broker.Cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		first()
		<-free
		return nil, nil, false
	})
	return arrived, func() { close(free) }
}

// TestSlow has a cluster that does not answer in time. What was given up does not overtake
// what comes later.
func TestSlow(t *testing.T) {
	t.Parallel()
	broker := kafkatest.New(t)
	publisher := kafkatest.Open(t, broker.URL())
	first := publishertest.Messages(8)
	publishertest.Deliver(t, publisher, first)
	came, release := hold(t, broker)
	messages := publishertest.Messages(2)
	messages[0].Key, messages[1].Key = "slow", "slow"
	errs := publishertest.Abandon(t, publisher, messages, func() { <-came })
	publishertest.Fails(t, errs[0], outbox.ClassRetryable, "no acknowledgement")
	if !errors.Is(errs[1], outbox.ErrNotAttempted) {
		t.Errorf("the next of its key: %v", errs[1])
	}
	release()
	publishertest.Deliver(t, publisher, messages)
	next := publishertest.Messages(1)
	next[0].Key = "slow"
	publishertest.Deliver(t, publisher, next)
	var order []string
	for _, r := range broker.Received(t) {
		if r.Key == "slow" {
			order = append(order, r.ID.String())
		}
	}
	last := []string{messages[0].ID.String(), messages[1].ID.String(), next[0].ID.String()}
	if got := strings.Join(order, " "); !strings.HasSuffix(got, strings.Join(last, " ")) {
		t.Errorf("got %q, want %q at the end", order, last)
	}
}

// TestFrozen has a cluster that does not even greet: calls end with their contexts.
func TestFrozen(t *testing.T) {
	t.Parallel()
	broker := kafkatest.New(t)
	came, release := hold(t, broker)
	defer release()
	other := kafkatest.Open(t, broker.URL())
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(done)
		other.Publish(ctx, publishertest.Messages(1))
	}()
	<-came
	publisher := kafkatest.Open(t, broker.URL())
	for _, ask := range []func(context.Context) error{
		publisher.Ping,
		func(ctx context.Context) error { return publisher.Publish(ctx, publishertest.Messages(1))[0] },
	} {
		short, end := context.WithTimeout(t.Context(), 300*time.Millisecond) // nothing has to happen in it
		publishertest.Fails(t, publishertest.Ends(t, func() error { return ask(short) }), outbox.ClassUnavailable)
		end()
	}
	cancel()
	<-done
}

// TestClose closes while a batch is under way.
func TestClose(t *testing.T) {
	t.Parallel()
	broker := kafkatest.New(t)
	publisher := kafkatest.Open(t, broker.URL())
	publishertest.Deliver(t, publisher, publishertest.Messages(1))
	came, release := hold(t, broker)
	results := make(chan []error)
	go func() { results <- publisher.Publish(context.WithoutCancel(t.Context()), publishertest.Messages(100)) }()
	<-came
	closed := make(chan error, 1)
	go func() { closed <- publisher.Close() }()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for !strings.Contains(publisher.Ping(over).Error(), "closed") {
		runtime.Gosched() // until Close has begun
	}
	select {
	case <-closed:
		t.Error("Close did not wait")
	case <-time.After(100 * time.Millisecond):
	}
	release()
	for _, err := range <-results {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := publisher.Close(); err != nil {
		t.Error(err)
	}
	publishertest.Fails(t, publishertest.Publish(t, publisher, publishertest.Messages(1))[0], outbox.ClassUnavailable, "closed")
	publishertest.Fails(t, publisher.Ping(t.Context()), outbox.ClassUnavailable, "closed")
	if got := len(broker.Received(t)); got != 101 {
		t.Errorf("%d messages arrived", got)
	}
}

func TestCloudEvents(t *testing.T) {
	t.Parallel()
	broker := kafkatest.New(t)
	messages := publishertest.Messages(1)
	messages[0].Headers["content-type"] = "not this"
	publishertest.Deliver(t, kafkatest.Open(t, broker.URL()+"?format=cloudevents&source=/shop"), messages)
	got := broker.Received(t)[0]
	if got.ID != messages[0].ID || string(got.Payload) != string(messages[0].Payload) {
		t.Errorf("got %+v", got)
	}
	for name, value := range map[string]string{
		"ce_specversion": "1.0", "ce_source": "/shop", "ce_type": "order_created", "content-type": "application/json",
		"trace": "t1", "ce_subject": "order/0", "ce_partitionkey": "order/0", "event_id": "",
	} {
		if got.Attributes[name] != value {
			t.Errorf("%s is %q, want %q", name, got.Attributes[name], value)
		}
	}
}

// TestNoKey has messages without a key, which need not wait for each other.
func TestNoKey(t *testing.T) {
	t.Parallel()
	broker := kafkatest.New(t)
	messages := publishertest.Messages(300)
	for i := range messages {
		messages[i].Key = ""
	}
	publishertest.Deliver(t, kafkatest.Open(t, broker.URL()), messages)
	if got := len(broker.Received(t)); got != len(messages) {
		t.Errorf("%d messages arrived", got)
	}
}
