package gocloud_test

import (
	"net/url"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/wire"
	"github.com/packfinderz/outbox/internal/testing/outagetest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
	"github.com/packfinderz/outbox/outboxtest/tcpproxy"
)

// TestOutages takes the stand-in of SQS away under a relay.
func TestOutages(t *testing.T) {
	t.Parallel()
	outagetest.Run(t, newOutages, "refused", "hung", "dropped", "TLS broken", "credentials revoked", "its own trouble", "away",
		"throttled", "topic deleted", "slow")
}

func newOutages(t testing.TB) outagetest.Destination {
	t.Helper()
	q := newQueue(t, nil)
	proxy := tcpproxy.New(t, q.Listener.Addr().String())
	address := "awssqs://sqs.example/1/{topic}?region=eu-west-1&anonymous=true&endpoint=" + url.QueryEscape("http://"+proxy.Address())
	set := func(change func()) func(testing.TB) {
		return func(testing.TB) {
			q.mu.Lock()
			defer q.mu.Unlock()
			change()
		}
	}
	answers := func(name string, code int, body string) outagetest.Fault {
		return outagetest.Fault{
			Name:  name,
			Begin: set(func() { q.answer = func([]entry) (int, string) { return code, body } }),
			End:   set(func() { q.answer = nil }),
		}
	}
	return outagetest.Destination{
		Publisher: func(t testing.TB) outbox.Publisher { t.Helper(); return open(t, address) },
		Received: func(testing.TB) (ids []uuid.UUID) {
			for _, e := range q.all() {
				ids = append(ids, uuid.MustParse(e.MessageAttributes[wire.EventID].StringValue))
			}
			return ids
		},
		OtherTopic: "payments",
		Faults: []outagetest.Fault{
			{Name: "refused", Begin: func(testing.TB) { proxy.Cut() }, End: proxy.Restore},
			{Name: "hung", Begin: func(testing.TB) { proxy.Swallow() }, End: func(testing.TB) { proxy.Resume() }},
			{
				// As a network does that loses every packet: what was sent meanwhile never arrives.
				Name: "dropped", Begin: func(testing.TB) { proxy.Swallow() },
				End: func(t testing.TB) { t.Helper(); proxy.Cut(); proxy.Resume(); proxy.Restore(t) },
			},
			{Name: "TLS broken", Begin: func(testing.TB) { proxy.Garble(true) }, End: func(testing.TB) { proxy.Garble(false) }},
			answers("credentials revoked", 403, `{"__type": "ExpiredToken", "message": "no"}`),
			answers("its own trouble", 500, `{"__type": "InternalFailure", "message": "no"}`),
			answers("away", 503, `{"__type": "ServiceUnavailable", "message": "no"}`),
			answers("throttled", 400, `{"__type": "ThrottlingException", "message": "no"}`),
			{Name: "topic deleted", Topic: true, Begin: set(func() { q.missing = publishertest.Topic }), End: set(func() { q.missing = "" })},
			{Name: "slow", Slow: true, Begin: func(testing.TB) { proxy.Throttle(20_000) }, End: func(testing.TB) { proxy.Throttle(0) }},
		},
	}
}
