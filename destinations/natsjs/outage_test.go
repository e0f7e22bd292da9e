package natsjs_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/natsjs/natstest"
	"github.com/packfinderz/outbox/internal/testing/outagetest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
	"github.com/packfinderz/outbox/outboxtest/tcpproxy"
)

const (
	otherTopic = "payments"
	knownUser  = `authorization { users = [{user: relay, password: relay}, {user: admin, password: admin}] }`
	nobody     = `authorization { users = [{user: admin, password: admin}] }`
)

// TestOutages takes the server away under a relay.
func TestOutages(t *testing.T) {
	t.Parallel()
	outagetest.Run(t, newOutages, "refused", "killed", "hung", "dropped", "TLS broken", "credentials revoked", "topic deleted", "stream full", "slow")
}

func newOutages(t testing.TB) outagetest.Destination {
	t.Helper()
	broker := natstest.Bare(t, natstest.Settings{Config: knownUser, User: "admin", Password: "admin"})
	orders := jetstream.StreamConfig{Name: natstest.Stream, Subjects: []string{publishertest.Topic}}
	stream(t, broker, orders)
	stream(t, broker, jetstream.StreamConfig{Name: "PAYMENTS", Subjects: []string{otherTopic}})
	proxy := tcpproxy.New(t, broker.Address())
	read := func(t testing.TB, stream string) (ids []uuid.UUID) {
		t.Helper()
		for _, r := range broker.ReceivedIn(t, stream) {
			ids = append(ids, r.ID)
		}
		return ids
	}
	update := func(t testing.TB, config jetstream.StreamConfig) {
		t.Helper()
		if _, err := streams(t, broker).UpdateStream(t.Context(), config); err != nil {
			t.Error(err)
		}
	}
	var gone []uuid.UUID // with a stream that was deleted
	return outagetest.Destination{
		Publisher: func(t testing.TB) outbox.Publisher { t.Helper(); return open(t, "nats://relay:relay@"+proxy.Address()) },
		Received: func(t testing.TB) []uuid.UUID {
			t.Helper()
			return append(append(gone, read(t, natstest.Stream)...), read(t, "PAYMENTS")...)
		},
		OtherTopic: otherTopic,
		Faults: []outagetest.Fault{
			{Name: "refused", Begin: func(testing.TB) { proxy.Cut() }, End: func(t testing.TB) { t.Helper(); proxy.Restore(t) }},
			{Name: "killed", Begin: broker.Stop, End: broker.Start},
			{Name: "hung", Begin: broker.Freeze, End: broker.Thaw},
			{
				// As a network does that loses every packet: what was sent meanwhile never arrives.
				Name: "dropped", Begin: func(testing.TB) { proxy.Swallow() },
				End: func(t testing.TB) { t.Helper(); proxy.Cut(); proxy.Resume(); proxy.Restore(t) },
			},
			{Name: "TLS broken", Begin: func(testing.TB) { proxy.Garble(true) }, End: func(testing.TB) { proxy.Garble(false) }},
			{
				Name:  "credentials revoked",
				Begin: func(t testing.TB) { t.Helper(); broker.Restart(t, nobody) },
				End:   func(t testing.TB) { t.Helper(); broker.Restart(t, knownUser) },
			},
			{
				Name: "topic deleted", Topic: true,
				Begin: func(t testing.TB) {
					t.Helper()
					// Nothing may arrive between the look at the stream and its end.
					without := orders
					without.Subjects = []string{"nothing"}
					update(t, without)
					gone = read(t, natstest.Stream)
					if err := streams(t, broker).DeleteStream(t.Context(), natstest.Stream); err != nil {
						t.Error(err)
					}
				},
				End: func(t testing.TB) { t.Helper(); stream(t, broker, orders) },
			},
			{
				Name: "stream full", Topic: true,
				Begin: func(t testing.TB) {
					t.Helper()
					full := orders
					full.MaxMsgs, full.Discard = 600, jetstream.DiscardNew
					update(t, full)
				},
				End: func(t testing.TB) { t.Helper(); update(t, orders) },
			},
			{Name: "slow", Slow: true, Begin: func(testing.TB) { proxy.Throttle(20_000) }, End: func(testing.TB) { proxy.Throttle(0) }},
		},
	}
}
