package redis_test

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/redis/redistest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
	"github.com/packfinderz/outbox/outboxtest/testserver"
)

func TestCloudEvents(t *testing.T) {
	t.Parallel()
	broker := redistest.New(t)
	messages := publishertest.Messages(1)
	messages[0].Headers["content-type"] = "the field stands"
	if err := publishertest.Publish(t, open(t, broker.URL()+"?format=cloudevents&source=/shop"), messages)[0]; err != nil {
		t.Fatal(err)
	}
	got := broker.Received(t)[0]
	m := messages[0]
	want := map[string]string{
		"ce_specversion": "1.0", "ce_id": m.ID.String(), "ce_source": "/shop", "ce_type": m.Type, "ce_time": m.CreatedAt.Format(time.RFC3339Nano),
		"ce_subject": "order/0", "ce_partitionkey": "order/0", "ce_tenantid": m.TenantID.String(), "ce_dedupekey": "k0",
		"trace": "t1", "content-type": "application/json",
	}
	if !maps.Equal(got.Attributes, want) || got.Key != m.Key || string(got.Payload) != string(m.Payload) {
		t.Errorf("got %+v, want %v", got, want)
	}
}

// TestLargeBatch is a batch of several round trips, over several streams that share keys.
func TestLargeBatch(t *testing.T) {
	t.Parallel()
	broker := redistest.New(t)
	streams := []string{"app:one", "app:two", "app:three"}
	for _, stream := range streams {
		broker.Create(t, stream)
	}
	messages := publishertest.Messages(5000)
	for i := range messages {
		messages[i].Topic = strings.TrimPrefix(streams[i/7%3], "app:")
		messages[i].Key = "key" + strconv.Itoa(i%50)
		if i%1000 == 0 {
			messages[i].Payload = make([]byte, 5<<20)
		}
	}
	for i, err := range publishertest.Publish(t, open(t, broker.URL()+"?prefix=app:"), messages) {
		if err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
	}
	for _, stream := range streams {
		var want []string
		for i := range messages {
			if "app:"+messages[i].Topic == stream {
				want = append(want, messages[i].Key+" "+messages[i].ID.String())
			}
		}
		var got []string
		for _, r := range broker.ReceivedIn(t, stream) {
			got = append(got, r.Key+" "+r.ID.String())
		}
		// Keys may pass each other; within a key the ids are in order already.
		byKey := func(a, b string) int { return strings.Compare(strings.Fields(a)[0], strings.Fields(b)[0]) }
		slices.SortStableFunc(want, byKey)
		slices.SortStableFunc(got, byKey)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d messages arrived, not the %d of it in the order of their keys", stream, len(got), len(want))
		}
	}
}

// TestScriptLost has the server forget the script.
func TestScriptLost(t *testing.T) {
	t.Parallel()
	broker := redistest.New(t)
	publisher := open(t, broker.URL())
	for range 2 {
		if err := broker.Client().ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(publishertest.Publish(t, publisher, publishertest.Messages(3))...); err != nil {
			t.Error(err)
		}
	}
	if n := len(broker.Received(t)); n != 6 {
		t.Errorf("%d messages arrived, want 6", n)
	}
}

func TestMaxLen(t *testing.T) {
	t.Parallel()
	broker := redistest.New(t)
	if err := errors.Join(publishertest.Publish(t, open(t, broker.URL()+"?maxlen=100"), publishertest.Messages(2000))...); err != nil {
		t.Fatal(err)
	}
	if n := len(broker.Received(t)); n < 100 || n > 500 {
		t.Errorf("%d entries, want about 100", n)
	}
}

// TestStopped kills the server while it takes batches: what was acknowledged is there when it comes
// back, and the publisher finds it by itself.
func TestStopped(t *testing.T) {
	t.Parallel()
	broker := redistest.New(t)
	publishertest.Cut(t, broker, open(t, broker.URL()))
}

// TestCloseWaits closes a publisher in the middle of a batch.
func TestCloseWaits(t *testing.T) {
	t.Parallel()
	broker := redistest.New(t)
	publisher := open(t, broker.URL())
	results := make(chan []error, 1)
	go func() { results <- publishertest.Publish(t, publisher, publishertest.Messages(20_000)) }()
	await.Until(t, "a message to arrive", func() bool { return broker.Client().XLen(t.Context(), publishertest.Topic).Val() > 0 })
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

func TestReplicas(t *testing.T) {
	t.Parallel()
	broker := redistest.New(t)
	replica := redistest.New(t)
	if err := replica.Client().ReplicaOf(t.Context(), "127.0.0.1", strings.TrimPrefix(broker.Address(), "127.0.0.1:")).Err(); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the replica to follow", func() bool {
		return strings.Contains(replica.Client().Info(t.Context(), "replication").Val(), "master_link_status:up")
	})
	publisher := open(t, broker.URL()+"?wait=1&wait-timeout=2s")
	if err := publisher.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	if err := errors.Join(publishertest.Publish(t, publisher, publishertest.Messages(100))...); err != nil {
		t.Error(err)
	}
	if n := len(replica.Received(t)); n != 100 {
		t.Errorf("the replica has %d messages, want 100", n)
	}
	replica.Stop(t)
	publishertest.Fails(t, publishertest.Publish(t, publisher, publishertest.Messages(1))[0], outbox.ClassUnavailable, "0 of 1 replicas")
	publishertest.Fails(t, publisher.Ping(t.Context()), outbox.ClassUnavailable, "0 of 1 replicas")
}

func TestCluster(t *testing.T) {
	t.Parallel()
	broker := redistest.NewCluster(t)
	broker.Create(t, "payments")
	rights := []any{"acl", "setuser", "app", "on", ">secret", "-@all", "+xadd", "+evalsha", "+eval", "+cluster|slots", "~*"}
	if err := broker.Client().Do(t.Context(), rights...).Err(); err != nil {
		t.Fatal(err)
	}
	publisher := open(t, "redis://app:secret@"+broker.Address()+"?cluster=true")
	if err := publisher.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	messages := publishertest.Messages(100)
	for i := range messages {
		messages[i].Topic = []string{publishertest.Topic, "payments"}[i%2]
	}
	if err := errors.Join(publishertest.Publish(t, publisher, messages)...); err != nil {
		t.Error(err)
	}
	if a, b := len(broker.Received(t)), len(broker.ReceivedIn(t, "payments")); a != 50 || b != 50 {
		t.Errorf("%d and %d messages arrived, want 50 and 50", a, b)
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	certificate := testserver.NewCertificate(t)
	port, err := testserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	redistest.New(t, "--tls-port", strconv.Itoa(port), "--tls-cert-file", certificate.Cert, "--tls-key-file", certificate.Key,
		"--tls-ca-cert-file", certificate.CA, "--tls-auth-clients", "yes")
	url := "rediss://127.0.0.1:" + strconv.Itoa(port)
	publisher := open(t, url+"?ca="+certificate.CA+"&cert="+certificate.Cert+"&key="+certificate.Key)
	if err := errors.Join(publishertest.Publish(t, publisher, publishertest.Messages(10))...); err != nil {
		t.Error(err)
	}
	publishertest.Fails(t, open(t, url+"?cert="+certificate.Cert+"&key="+certificate.Key).Ping(t.Context()), outbox.ClassUnavailable, "unknown authority")
	publishertest.Fails(t, open(t, url+"?ca="+certificate.CA).Ping(t.Context()), outbox.ClassUnavailable, "")
}
