package kafka_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/kafka/kafkatest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

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
	for _, err := range errs { // in one record batch: the second may have been stored as well
		publishertest.Fails(t, err, outbox.ClassUnclear, "no acknowledgement")
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
