package kafka_test

import (
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/kafka/kafkatest"
	"github.com/packfinderz/outbox/internal/testing/outagetest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
	"github.com/packfinderz/outbox/outboxtest/tcpproxy"
)

const otherTopic = "payments"

// TestOutages takes the cluster away under a relay.
func TestOutages(t *testing.T) {
	t.Parallel()
	outagetest.Run(t, newOutages, "refused", "hung", "dropped", "TLS broken", "credentials revoked",
		"one broker gone", "one broker hung", "topic deleted", "slow")
}

func newOutages(t testing.TB) outagetest.Destination {
	t.Helper()
	broker := kafkatest.New(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "relay", "s3cret"))
	url := "kafka://relay:s3cret@" + broker.Addresses()
	if err := broker.Cluster.CreateTopic(otherTopic, 2, nil); err != nil {
		t.Fatal(err)
	}
	read := func(t testing.TB, topic string) (ids []uuid.UUID) {
		t.Helper()
		list, err := kafkatest.ReadAs(topic, clientOptions(t, url)...)
		if err != nil {
			t.Error(err)
		}
		for _, r := range list {
			ids = append(ids, r.ID)
		}
		return ids
	}
	var gone []uuid.UUID // with a topic that was deleted
	var refused *kfake.FaultHandle
	each := func(do func(*tcpproxy.Proxy)) func(testing.TB) {
		return func(testing.TB) {
			for _, proxy := range broker.Proxies() {
				do(proxy)
			}
		}
	}
	return outagetest.Destination{
		Publisher: func(t testing.TB) outbox.Publisher { t.Helper(); return kafkatest.Open(t, url) },
		Received: func(t testing.TB) []uuid.UUID {
			t.Helper()
			return slices.Concat(gone, read(t, publishertest.Topic), read(t, otherTopic))
		},
		OtherTopic: otherTopic,
		Faults: []outagetest.Fault{
			{Name: "refused", Begin: broker.Stop, End: broker.Start},
			{Name: "hung", Begin: each((*tcpproxy.Proxy).Swallow), End: each((*tcpproxy.Proxy).Resume)},
			{
				// As a network does that loses every packet: what was sent meanwhile never arrives.
				Name: "dropped", Begin: each((*tcpproxy.Proxy).Swallow),
				End: func(t testing.TB) { t.Helper(); broker.Stop(t); each((*tcpproxy.Proxy).Resume)(t); broker.Start(t) },
			},
			{
				Name:  "TLS broken",
				Begin: each(func(p *tcpproxy.Proxy) { p.Garble(true) }), End: each(func(p *tcpproxy.Proxy) { p.Garble(false) }),
			},
			{
				Name: "credentials revoked",
				Begin: func(testing.TB) {
					refused = broker.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.SASLAuthenticate}, TopLevel: true, Err: kerr.SaslAuthenticationFailed, Count: -1})
					each((*tcpproxy.Proxy).Break)(t)
				},
				End: func(testing.TB) { refused.Remove() },
			},
			{
				Name:  "one broker gone",
				Begin: func(testing.TB) { broker.Leader(0).Cut() }, End: func(t testing.TB) { t.Helper(); broker.Leader(0).Restore(t) },
			},
			{
				Name:  "one broker hung",
				Begin: func(testing.TB) { broker.Leader(0).Swallow() }, End: func(testing.TB) { broker.Leader(0).Resume() },
			},
			{
				Name: "topic deleted", Topic: true,
				Begin: func(t testing.TB) {
					t.Helper()
					// Nothing may arrive between the look at the topic and its end.
					end := broker.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: publishertest.Topic, Err: kerr.UnknownTopicOrPartition, Count: -1})
					gone = read(t, publishertest.Topic)
					if err := broker.Cluster.DeleteTopic(publishertest.Topic); err != nil {
						t.Error(err)
					}
					end.Remove()
				},
				End: func(t testing.TB) {
					t.Helper()
					if err := broker.Cluster.CreateTopic(publishertest.Topic, kafkatest.Partitions, nil); err != nil {
						t.Error(err)
					}
				},
			},
			{
				Name: "slow", Slow: true,
				Begin: func(testing.TB) { broker.Throttle(20_000) }, End: func(testing.TB) { broker.Throttle(0) },
			},
		},
	}
}
