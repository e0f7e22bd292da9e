package consumer_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/consumetest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

// ahead is a service that does what Google's test server does not, and the real one does: it
// delivers the messages of a key ahead, and when one is given back delivers it and all later
// ones of the key again.
type ahead struct {
	pubsubpb.UnimplementedSubscriberServer
	messages []outbox.Message
	again    chan struct{}

	mu        sync.Mutex
	delivered int             // how often all were
	acked     map[string]bool // by the place of the message
}

func (a *ahead) GetSubscription(context.Context, *pubsubpb.GetSubscriptionRequest) (*pubsubpb.Subscription, error) {
	return &pubsubpb.Subscription{Topic: publishertest.Topic, EnableMessageOrdering: true}, nil
}

func (a *ahead) StreamingPull(stream pubsubpb.Subscriber_StreamingPullServer) error {
	for {
		if err := stream.Send(a.batch()); err != nil {
			return err
		}
		select {
		case <-a.again:
		case <-stream.Context().Done():
			return nil
		}
	}
}

// batch is all messages from the first on that is not acknowledged.
func (a *ahead) batch() *pubsubpb.StreamingPullResponse {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.delivered++
	var list []*pubsubpb.ReceivedMessage
	for i, m := range a.messages {
		if len(list) == 0 && a.acked[fmt.Sprint(i)] {
			continue
		}
		list = append(list, &pubsubpb.ReceivedMessage{AckId: fmt.Sprintf("%d/%d", i, a.delivered), Message: &pubsubpb.PubsubMessage{
			MessageId: fmt.Sprint("m", i), Data: m.Payload, Attributes: map[string]string{"event_id": m.ID.String()}, OrderingKey: "k",
		}})
	}
	return &pubsubpb.StreamingPullResponse{
		ReceivedMessages:       list,
		SubscriptionProperties: &pubsubpb.StreamingPullResponse_SubscriptionProperties{MessageOrderingEnabled: true},
	}
}

func (a *ahead) Acknowledge(_ context.Context, r *pubsubpb.AcknowledgeRequest) (*emptypb.Empty, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range r.GetAckIds() {
		place, _, _ := strings.Cut(id, "/")
		a.acked[place] = true
	}
	return &emptypb.Empty{}, nil
}

func (a *ahead) ModifyAckDeadline(_ context.Context, r *pubsubpb.ModifyAckDeadlineRequest) (*emptypb.Empty, error) {
	for _, id := range r.GetAckIds() {
		if r.GetAckDeadlineSeconds() == 0 && strings.HasPrefix(id, "0/") {
			a.again <- struct{}{}
		}
	}
	return &emptypb.Empty{}, nil
}

// The first message of a key fails twice while the later ones are here already: they wait for it.
func TestOrderAfterFailure(t *testing.T) {
	t.Parallel()
	service := &ahead{messages: publishertest.Messages(4), again: make(chan struct{}, 10), acked: make(map[string]bool)}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	pubsubpb.RegisterSubscriberServer(server, service)
	go func() { _ = server.Serve(listener) }() // until it is stopped
	t.Cleanup(server.Stop)

	handled := consumetest.NewRecord()
	config := consumerConfig(t, "gcppubsub://shop?insecure=true&endpoint="+listener.Addr().String(), consumetest.Handler(func(_ context.Context, m outbox.Message) error {
		handled.Add(m)
		if m.ID == service.messages[0].ID && m.Attempt < 3 {
			return errEffect
		}
		return nil
	}))
	run(t, config)
	await.Until(t, "the last message", func() bool {
		service.mu.Lock()
		defer service.mu.Unlock()
		return service.acked["3"]
	})
	order := ""
	for _, m := range handled.All() {
		order += string(m.Payload)
	}
	if want := `{"order": 0}{"order": 0}{"order": 0}{"order": 1}{"order": 2}{"order": 3}`; order != want {
		t.Errorf("handled %s, want %s", order, want)
	}
}

// Consumers share a subscription, and a message that failed at one may come to another. The key
// goes on, in order.
func TestConsumersShareFailures(t *testing.T) {
	t.Parallel()
	const events, keys = 400, 20
	broker := subscribed(t)
	messages := publishertest.Messages(events)
	place := make(map[uuid.UUID]int)
	for i := range messages {
		messages[i].Key = fmt.Sprint(i % keys)
		place[messages[i].ID] = i
	}
	tried, handled := consumetest.NewRecord(), consumetest.NewRecord()
	var once sync.Map
	config := consumerConfig(t, broker.URL(), consumetest.Handler(func(_ context.Context, m outbox.Message) error {
		tried.Add(m)
		if _, again := once.LoadOrStore(m.ID, true); !again && place[m.ID]%5 < 2 {
			return errEffect
		}
		handled.Add(m)
		return nil
	}))
	config.Process.MaxDeliveries = 100
	for range 4 {
		run(t, config)
	}
	publishAll(t, broker, messages)
	// A key that has waited for what was elsewhere would take longer than this waits.
	await.Until(t, "every event to be acknowledged", func() bool { return acked(broker, publishertest.Topic) == events })
	last := make(map[string]int)
	for _, m := range handled.All() {
		if n := place[m.ID]; n < last[m.Key] {
			t.Fatalf("of key %s event %d came after %d", m.Key, n, last[m.Key])
		}
		last[m.Key] = place[m.ID]
	}
	if len(handled.All()) != events || len(tried.All()) != events+events*2/5 {
		t.Errorf("%d events were handled in %d deliveries", len(handled.All()), len(tried.All()))
	}
}
