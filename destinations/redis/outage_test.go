package redis_test

import (
	"net/url"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/redis/redistest"
	"github.com/packfinderz/outbox/internal/testing/outagetest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
	"github.com/packfinderz/outbox/outboxtest/tcpproxy"
	"github.com/packfinderz/outbox/outboxtest/testserver"
)

const otherTopic = "payments"

// do is a command to the server.
func do(broker *redistest.Broker, command ...any) func(testing.TB) {
	return func(t testing.TB) {
		t.Helper()
		if err := broker.Client().Do(t.Context(), command...).Err(); err != nil {
			t.Error(err)
		}
	}
}

func received(broker *redistest.Broker) func(t testing.TB) []uuid.UUID {
	return func(t testing.TB) (ids []uuid.UUID) {
		t.Helper()
		for _, stream := range []string{publishertest.Topic, otherTopic} {
			for _, r := range broker.ReceivedIn(t, stream) {
				ids = append(ids, r.ID)
			}
		}
		return ids
	}
}

// destination is a Redis behind a proxy, used by a user of its own.
func destination(t testing.TB) outagetest.Destination {
	t.Helper()
	broker := redistest.New(t)
	broker.Create(t, otherTopic)
	proxy := tcpproxy.New(t, broker.Address())
	const rights = "~* +xadd +type +evalsha +eval"
	broker.Grant(t, rights)
	on := func(change func()) func(testing.TB) { return func(testing.TB) { change() } }
	var thaw func()
	// The stream is away for a while, with another key in its place, or none.
	keep := do(broker, "rename", publishertest.Topic, "kept")
	back := do(broker, "rename", "kept", publishertest.Topic)
	return outagetest.Destination{
		Publisher:  func(t testing.TB) outbox.Publisher { t.Helper(); return open(t, "redis://app:s3cret@"+proxy.Address()) },
		Received:   received(broker),
		OtherTopic: otherTopic,
		Faults: []outagetest.Fault{
			{Name: "refused", Begin: on(proxy.Cut), End: proxy.Restore},
			{Name: "stopped", Begin: broker.Stop, End: func(t testing.TB) { t.Helper(); broker.Start(t); broker.Grant(t, rights) }},
			{Name: "hung", Begin: func(t testing.TB) { t.Helper(); thaw = broker.Freeze(t) }, End: func(testing.TB) { thaw() }},
			{Name: "dropped", Begin: on(proxy.Swallow), End: on(proxy.Resume)},
			{Name: "slow", Slow: true, Begin: on(func() { proxy.Throttle(20_000) }), End: on(func() { proxy.Throttle(0) })},
			{
				Name: "credentials revoked",
				Begin: func(t testing.TB) {
					t.Helper()
					do(broker, "acl", "setuser", "app", "resetpass", ">another")(t)
					do(broker, "client", "kill", "user", "app")(t)
				},
				End: do(broker, "acl", "setuser", "app", ">s3cret"),
			},
			{Name: "user deleted", Begin: do(broker, "acl", "deluser", "app"), End: func(t testing.TB) { t.Helper(); broker.Grant(t, rights) }},
			{Name: "rights revoked", Begin: do(broker, "acl", "setuser", "app", "-xadd"), End: do(broker, "acl", "setuser", "app", "+xadd")},
			{
				Name: "rights to the topic revoked", Topic: true,
				Begin: do(broker, "acl", "setuser", "app", "resetkeys", "~"+otherTopic), End: do(broker, "acl", "setuser", "app", "~*"),
			},
			{Name: "topic deleted", Topic: true, Begin: keep, End: back},
			{
				Name: "topic replaced", Topic: true,
				Begin: func(t testing.TB) {
					t.Helper()
					keep(t)
					do(broker, "set", publishertest.Topic, "text")(t)
				},
				End: back,
			},
			{Name: "full", Begin: do(broker, "config", "set", "maxmemory", "1"), End: do(broker, "config", "set", "maxmemory", "0")},
			{Name: "replica", Begin: do(broker, "replicaof", "127.0.0.1", "1"), End: do(broker, "replicaof", "no", "one")},
			{
				Name:  "too few replicas",
				Begin: do(broker, "config", "set", "min-replicas-to-write", "1"), End: do(broker, "config", "set", "min-replicas-to-write", "0"),
			},
		},
	}
}

// TestOutages takes Redis away under a relay.
func TestOutages(t *testing.T) {
	t.Parallel()
	outagetest.Run(t, destination, "refused", "stopped", "hung", "dropped", "slow", "credentials revoked", "user deleted",
		"rights revoked", "rights to the topic revoked", "topic deleted", "topic replaced", "full", "replica", "too few replicas")
	outagetest.Run(t, func(t testing.TB) outagetest.Destination {
		t.Helper()
		files := testserver.NewCertificate(t)
		port, err := testserver.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		broker := redistest.New(t, "--tls-port", testserver.Loopback(port)[len("127.0.0.1:"):], "--tls-auth-clients", "no",
			"--tls-cert-file", files.Cert, "--tls-key-file", files.Key, "--tls-ca-cert-file", files.CA)
		proxy := tcpproxy.New(t, testserver.Loopback(port))
		return outagetest.Destination{
			Publisher: func(t testing.TB) outbox.Publisher {
				t.Helper()
				return open(t, "rediss://"+proxy.Address()+"?ca="+url.QueryEscape(files.CA))
			},
			Received: received(broker),
			Faults: []outagetest.Fault{{
				Name: "TLS broken", Begin: func(testing.TB) { proxy.Garble(true) }, End: func(testing.TB) { proxy.Garble(false) },
			}},
		}
	}, "TLS broken")
	outagetest.Run(t, func(t testing.TB) outagetest.Destination {
		t.Helper()
		broker := redistest.NewCluster(t)
		slot := broker.Client().ClusterKeySlot(t.Context(), publishertest.Topic).Val()
		return outagetest.Destination{
			Publisher: func(t testing.TB) outbox.Publisher { t.Helper(); return open(t, broker.URL()+"?cluster=true") },
			Received:  received(broker),
			Faults: []outagetest.Fault{{
				Name: "cluster down", Begin: do(broker, "cluster", "delslots", slot), End: do(broker, "cluster", "addslots", slot),
			}},
		}
	}, "cluster down")
}
