package gcppubsub_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/gcppubsub"
	"github.com/packfinderz/outbox/destinations/gcppubsub/pubsubtest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, option := range map[string]string{"ordered": "", "unordered": "&ordering=false"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Keys pass each other on the way: there is no order of a whole batch.
			features := publishertest.Features{Attributes: true, Keys: option == "", Binary: true, Poison: func(m *outbox.Message) {
				m.Payload = make([]byte, 10_000_001)
			}}
			publishertest.Run(t, features, func(t *testing.T) publishertest.Harness {
				t.Helper()
				broker := pubsubtest.New(t)
				return publishertest.On(broker, pubsubtest.Open(t, broker.URL()+option))
			})
		})
	}
}

// Order of each key, with many keys in a batch and many requests for a key.
func TestOrderOfKeys(t *testing.T) {
	t.Parallel()
	broker := pubsubtest.New(t)
	publisher := pubsubtest.Open(t, broker.URL())
	const batches, size, keys = 5, 400, 7
	for n := range batches {
		messages := publishertest.Messages(size)
		for i := range messages {
			messages[i].Key = fmt.Sprint("key", i%keys)
			messages[i].Payload = fmt.Appendf(nil, "%09d%s", n*size+i, make([]byte, 40_000))
		}
		publishertest.Fates(t, publishertest.Publish(t, publisher, messages), make([]string, size)...)
	}
	received := broker.Received(t)
	if len(received) != batches*size {
		t.Fatalf("%d messages have arrived, want %d", len(received), batches*size)
	}
	last := make(map[string]string)
	for _, r := range received {
		if now := string(r.Payload[:9]); now <= last[r.Key] {
			t.Fatalf("key %s: %s after %s", r.Key, now, last[r.Key])
		} else {
			last[r.Key] = now
		}
	}
}

// Each message is told of as soon as the service has stored it: before the next request of its key is sent, and only if it was stored.
func TestPublishAcked(t *testing.T) {
	t.Parallel()
	const refused = 2
	var mu sync.Mutex
	var acked, before []int
	messages := publishertest.Messages(3)
	for i := range messages {
		messages[i].Key = "one"
		messages[i].Payload = make([]byte, 1<<20) // a request of its own
	}
	broker := pubsubtest.New(t, reacting(func(*pubsubpb.PublishRequest) error {
		mu.Lock()
		defer mu.Unlock()
		before = append(before, len(acked))
		if len(before) > refused {
			return status.Error(codes.InvalidArgument, "no")
		}
		return nil
	}))
	publisher := pubsubtest.Open(t, broker.URL())
	publisher.PublishAcked(t.Context(), messages, func(place int) {
		mu.Lock()
		defer mu.Unlock()
		acked = append(acked, place)
	})
	if !slices.Equal(acked, []int{0, 1}) || len(before) < 3 || !slices.Equal(before[:3], []int{0, 1, 2}) {
		t.Errorf("told of %v, and so many before each request: %v", acked, before)
	}
}

// Without ordering, messages of different keys share a request and carry no ordering key.
func TestUnordered(t *testing.T) {
	t.Parallel()
	requests := 0 // the server reacts to one request at a time
	broker := pubsubtest.New(t, reacting(func(*pubsubpb.PublishRequest) error { requests++; return nil }))
	publisher := pubsubtest.Open(t, broker.URL()+"&ordering=false")
	if publisher.KeepsOrder() {
		t.Error("it says that it keeps order")
	}
	publishertest.Fates(t, publishertest.Publish(t, publisher, publishertest.Messages(100)), make([]string, 100)...)
	if requests != 1 {
		t.Errorf("%d requests for 100 messages, want 1", requests)
	}
	for _, r := range broker.Received(t) {
		if r.Key != "" {
			t.Fatalf("a message has the ordering key %q", r.Key)
		}
	}
}

func TestCloudEvents(t *testing.T) {
	t.Parallel()
	broker := pubsubtest.New(t)
	publisher := pubsubtest.Open(t, broker.URL()+"&format=cloudevents&source=/shop")
	messages := publishertest.Messages(1)
	messages[0].CreatedAt = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	messages[0].Headers = map[string]string{"x-own": "1"}
	publishertest.Fates(t, publishertest.Publish(t, publisher, messages), "")
	got := broker.Received(t)[0].Attributes
	want := map[string]string{
		"ce-specversion": "1.0", "ce-id": messages[0].ID.String(), "ce-source": "/shop", "ce-type": "order_created",
		"ce-time": "2026-03-04T05:06:07Z", "ce-subject": "order/0", "ce-partitionkey": "order/0",
		"ce-tenantid": messages[0].TenantID.String(), "ce-dedupekey": "k0", "Content-Type": "application/json", "x-own": "1",
	}
	if !maps.Equal(got, want) {
		t.Errorf("the attributes are\n%q, want\n%q", got, want)
	}
}

// Topics may be of other projects, by their full name.
func TestTopics(t *testing.T) {
	t.Parallel()
	broker := pubsubtest.New(t)
	other := "projects/elsewhere/topics/bills"
	if _, err := broker.Server.GServer.CreateTopic(t.Context(), &pubsubpb.Topic{Name: other}); err != nil {
		t.Fatal(err)
	}
	messages := publishertest.Messages(4)
	messages[1].Topic = other
	messages[2].Topic = ""
	messages[3].Topic = "no such/topic"
	errs := publishertest.Publish(t, pubsubtest.Open(t, broker.URL()), messages)
	publishertest.Fates(t, errs, "", "", "topic missing", "rejected")
	wantText(t, errs[2], "--topic-default")
	wantText(t, errs[3], "no such/topic")
	if all := broker.Server.Messages(); len(all) != 2 {
		t.Errorf("%d messages have arrived, want 2", len(all))
	}
}

func TestCreate(t *testing.T) {
	t.Parallel()
	broker := pubsubtest.New(t)
	messages := publishertest.Messages(50)
	for i := range messages {
		messages[i].Topic = "new-topic"
	}
	errs := publishertest.Publish(t, pubsubtest.Open(t, broker.URL()), messages[:1])
	publishertest.Fates(t, errs, "topic missing")
	wantText(t, errs[0], "?create=true")
	publishertest.Fates(t, publishertest.Publish(t, pubsubtest.Open(t, broker.URL()+"&create=true"), messages), make([]string, len(messages))...)
	if all := broker.Server.Messages(); len(all) != len(messages) {
		t.Errorf("%d messages have arrived, want %d", len(all), len(messages))
	}
}

// A subscription that was made before gets what is published.
func TestSubscribe(t *testing.T) {
	t.Parallel()
	broker := pubsubtest.New(t)
	subscription := broker.Subscribe(t, "readers")
	messages := ofKeys("a", "b", "")
	publishertest.Fates(t, publishertest.Publish(t, pubsubtest.Open(t, broker.URL()), messages), "", "", "")
	got, err := broker.Server.GServer.Pull(t.Context(), &pubsubpb.PullRequest{Subscription: subscription, MaxMessages: 10})
	if err != nil || len(got.GetReceivedMessages()) != len(messages) {
		t.Errorf("pulled %d messages, want %d: %v", len(got.GetReceivedMessages()), len(messages), err)
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	reached, release := make(chan struct{}), make(chan struct{})
	broker := pubsubtest.New(t, reacting(func(*pubsubpb.PublishRequest) error {
		close(reached)
		<-release
		return nil
	}))
	publisher := pubsubtest.Open(t, broker.URL())
	published := make(chan []error)
	go func() { published <- publisher.Publish(t.Context(), ofKeys("a")) }()
	<-reached
	closed := make(chan error)
	go func() { closed <- publisher.Close() }()
	close(release)
	publishertest.Fates(t, <-published, "")
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if err := publisher.Close(); err != nil {
		t.Errorf("closing it twice: %v", err)
	}
	publishertest.Fates(t, publishertest.Publish(t, publisher, ofKeys("a")), "away")
	if publisher.Ping(t.Context()) == nil {
		t.Error("a closed publisher answers a ping")
	}
}

func TestEmulatorHost(t *testing.T) {
	broker := pubsubtest.New(t)
	t.Setenv("PUBSUB_EMULATOR_HOST", broker.Endpoint())
	publisher := pubsubtest.Open(t, "gcppubsub://"+pubsubtest.Project)
	if err := publisher.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	messages := ofKeys("a")
	publishertest.Fates(t, publishertest.Publish(t, publisher, messages), "")
	wantPayloads(t, broker, messages...)
	// The client would send to the endpoint in the clear.
	_, err := gcppubsub.New(gcppubsub.Config{Project: "p", Endpoint: "pubsub.example:443"})
	wantText(t, err, "PUBSUB_EMULATOR_HOST")
}
