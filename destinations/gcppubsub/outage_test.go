package gcppubsub_test

import (
	"sync/atomic"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/gcppubsub/pubsubtest"
	"github.com/packfinderz/outbox/destinations/wire"
	"github.com/packfinderz/outbox/internal/testing/outagetest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

const otherTopic = "payments"

// TestOutages takes the service away under a relay.
func TestOutages(t *testing.T) {
	t.Parallel()
	outagetest.Run(t, newOutages, "refused", "hung", "dropped", "TLS broken", "credentials revoked", "its own trouble",
		"topic deleted", "topic denied", "quota", "slow")
}

func newOutages(t testing.TB) outagetest.Destination {
	t.Helper()
	var answer atomic.Pointer[func(topic string) error]
	broker := pubsubtest.New(t, reacting(func(r *pubsubpb.PublishRequest) error {
		if f := answer.Load(); f != nil {
			return (*f)(r.Topic)
		}
		return nil
	}))
	broker.CreateTopic(t, otherTopic)
	proxy := broker.Proxy()
	answers := func(name string, code codes.Code, ofTopic bool) outagetest.Fault {
		f := func(topic string) error {
			if ofTopic && topic != pubsubtest.TopicPath(publishertest.Topic) {
				return nil
			}
			return status.Error(code, "as the test wants it")
		}
		return outagetest.Fault{
			Name: name, Topic: ofTopic,
			Begin: func(testing.TB) { answer.Store(&f) }, End: func(testing.TB) { answer.Store(nil) },
		}
	}
	return outagetest.Destination{
		Publisher: func(t testing.TB) outbox.Publisher { t.Helper(); return pubsubtest.Open(t, broker.URL()) },
		Received: func(testing.TB) (ids []uuid.UUID) {
			for _, m := range broker.Server.Messages() {
				ids = append(ids, uuid.MustParse(m.Attributes[wire.EventID]))
			}
			return ids
		},
		OtherTopic: otherTopic,
		Faults: []outagetest.Fault{
			{Name: "refused", Begin: broker.Stop, End: broker.Start},
			{Name: "hung", Begin: func(testing.TB) { proxy.Swallow() }, End: func(testing.TB) { proxy.Resume() }},
			{
				// As a network does that loses every packet: what was sent meanwhile never arrives.
				Name: "dropped", Begin: func(testing.TB) { proxy.Swallow() },
				End: func(t testing.TB) { t.Helper(); proxy.Cut(); proxy.Resume(); proxy.Restore(t) },
			},
			{Name: "TLS broken", Begin: func(testing.TB) { proxy.Garble(true) }, End: func(testing.TB) { proxy.Garble(false) }},
			answers("credentials revoked", codes.Unauthenticated, false),
			answers("its own trouble", codes.Unknown, false),
			answers("topic denied", codes.PermissionDenied, true),
			answers("quota", codes.ResourceExhausted, true),
			{
				Name: "topic deleted", Topic: true,
				Begin: func(t testing.TB) {
					t.Helper()
					if _, err := broker.Server.GServer.DeleteTopic(t.Context(), &pubsubpb.DeleteTopicRequest{Topic: pubsubtest.TopicPath(publishertest.Topic)}); err != nil {
						t.Error(err)
					}
				},
				End: func(t testing.TB) { t.Helper(); broker.CreateTopic(t, publishertest.Topic) },
			},
			{Name: "slow", Slow: true, Begin: func(testing.TB) { broker.Throttle(20_000) }, End: func(testing.TB) { broker.Throttle(0) }},
		},
	}
}
