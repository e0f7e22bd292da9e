package rabbitmq_test

import (
	"errors"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/rabbitmq"
	"github.com/packfinderz/outbox/destinations/rabbitmq/rabbittest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
	"github.com/packfinderz/outbox/outboxtest/testserver"
)

func testTLS(t *testing.T, broker *rabbittest.Broker, address string, certificate testserver.Certificate) {
	t.Helper()
	url := "amqps://" + address + "/" + broker.VhostName()
	publisher := open(t, url+"?ca="+certificate.CA+"&cert="+certificate.Cert+"&key="+certificate.Key)
	if err := errors.Join(publishertest.Publish(t, publisher, publishertest.Messages(10))...); err != nil {
		t.Error(err)
	}
	publishertest.Fails(t, open(t, url+"?cert="+certificate.Cert+"&key="+certificate.Key).Ping(t.Context()), outbox.ClassUnavailable, "unknown authority")
	port := address[strings.LastIndex(address, ":"):]
	other := "amqps://localhost" + port + "/" + broker.VhostName() // which the certificate does not name
	publishertest.Fails(t, open(t, other+"?ca="+certificate.CA+"&cert="+certificate.Cert+"&key="+certificate.Key).Ping(t.Context()), outbox.ClassUnavailable, "localhost")
	publishertest.Fails(t, open(t, url+"?ca="+certificate.CA).Ping(t.Context()), outbox.ClassUnavailable, "")
}

func testCloudEvents(t *testing.T, broker *rabbittest.Broker) {
	t.Helper()
	messages := publishertest.Messages(1)
	if err := publishertest.Publish(t, open(t, broker.URL()+"?format=cloudevents&source=/shop"), messages)[0]; err != nil {
		t.Fatal(err)
	}
	got := broker.Received(t)[0]
	m := messages[0]
	want := map[string]string{
		"cloudEvents_specversion": "1.0", "cloudEvents_id": m.ID.String(), "cloudEvents_source": "/shop", "cloudEvents_type": m.Type,
		"cloudEvents_time": m.CreatedAt.Format(time.RFC3339Nano), "cloudEvents_subject": "order/0", "cloudEvents_partitionkey": "order/0",
		"cloudEvents_tenantid": m.TenantID.String(), "cloudEvents_dedupekey": "k0", "trace": "t1",
	}
	if !maps.Equal(got.Attributes, want) || string(got.Payload) != string(m.Payload) || got.ContentType != m.ContentType {
		t.Errorf("got %+v, want %v and the content type %s", got, want, m.ContentType)
	}
}

// testLargeBatch is more than goes out at once, with 100 messages of each key.
func testLargeBatch(t *testing.T, broker *rabbittest.Broker) {
	t.Helper()
	messages := publishertest.Messages(5000)
	order := make(map[string][]string)
	for i := range messages {
		m := &messages[i]
		if i < 3000 {
			m.Key = "" // all in the first round
		} else {
			m.Key = "key" + strconv.Itoa(i%50)
			m.AggregateID = m.Key
			order[m.Key] = append(order[m.Key], m.ID.String())
		}
		if i%100 == 0 {
			m.Payload = make([]byte, 400_000)
		}
	}
	for i, err := range publishertest.Publish(t, open(t, broker.URL()), messages) {
		if err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
	}
	received := broker.Received(t)
	if len(received) != len(messages) {
		t.Fatalf("%d messages arrived, want %d", len(received), len(messages))
	}
	for _, r := range received {
		key := r.Attributes["aggregate_id"]
		if ids := order[key]; len(ids) > 0 {
			if ids[0] != r.ID.String() {
				t.Fatalf("%s came before its turn", r.ID)
			}
			order[key] = ids[1:]
		}
	}
}

// testCloseWaits closes a publisher in the middle of a batch.
func testCloseWaits(t *testing.T, broker *rabbittest.Broker) {
	t.Helper()
	publisher := open(t, broker.URL())
	results := make(chan []error, 1)
	go func() { results <- publishertest.Publish(t, publisher, publishertest.Messages(20_000)) }()
	await.Until(t, "a message to arrive", func() bool { return len(broker.Received(t)) > 0 })
	if err := publisher.Close(); err != nil {
		t.Error(err)
	}
	if n := len(broker.Received(t)); n != 20_000 {
		t.Errorf("%d messages had arrived when it was closed, want 20,000", n)
	}
	if err := errors.Join(<-results...); err != nil {
		t.Error(err)
	}
	publishertest.Fails(t, publishertest.Publish(t, publisher, publishertest.Messages(1))[0], outbox.ClassUnavailable, "closed")
}

// TestOutage takes a server of its own through a memory alarm and a kill.
func TestOutage(t *testing.T) {
	t.Parallel()
	broker := rabbittest.New(t)
	publisher := open(t, broker.URL())
	alarm(t, broker, publisher)
	publishertest.Cut(t, broker, publisher)
}

// alarm has the server read nothing from publishers, as when it is short of memory.
func alarm(t *testing.T, broker *rabbittest.Broker, publisher *rabbitmq.Publisher) {
	t.Helper()
	if err := publisher.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The second answer comes when every connection has been told.
	broker.Eval(t, "(fun() -> vm_memory_monitor:set_vm_memory_high_watermark(0.000001), [_ | _] = rabbit_alarm:get_alarms(), ok end)()")
	messages := publishertest.Messages(200)
	for i := range messages {
		messages[i].Payload = make([]byte, 100_000) // more than the sockets hold
	}
	for _, err := range publishertest.Publish(t, publisher, messages) {
		if !errors.Is(err, outbox.ErrNotAttempted) {
			publishertest.Fails(t, err, outbox.ClassUnavailable, "takes no messages for now: low on memory")
		}
	}
	for range 100 {
		// Now and then the server answers before it stops to read.
		publishertest.Fails(t, publisher.Ping(t.Context()), outbox.ClassUnavailable, "takes no messages for now")
	}
	broker.Eval(t, "(fun() -> vm_memory_monitor:set_vm_memory_high_watermark(0.4), [] = rabbit_alarm:get_alarms(), ok end)()")
	if err := publisher.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	if err := errors.Join(publishertest.Publish(t, publisher, messages)...); err != nil {
		t.Error(err)
	}
}

// TestSecondServer has a first address where nobody listens.
func TestSecondServer(t *testing.T) {
	t.Parallel()
	broker := rabbittest.New(t)
	publishertest.Deliver(t, open(t, strings.Replace(broker.URL(), "//", "//127.0.0.1:1,", 1)+"?create=true"), publishertest.Messages(2))
	if n := len(broker.Received(t)); n != 2 {
		t.Errorf("%d messages arrived", n)
	}
}
