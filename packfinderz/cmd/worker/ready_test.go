package main

import (
	"net/http"
	"strings"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/packfinderz/outbox/destinations/gcppubsub/pubsubtest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/testdb"
	"github.com/packfinderz/outbox/packfinderz/internal/backendtest"
)

// TestReadiness takes away what the worker needs.
func TestReadiness(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	address := backendtest.Address(t)
	b.start(map[string]string{"PACKFINDERZ_WORKER_LISTEN": address})
	backendtest.AwaitStatus(t, address, "/readyz", http.StatusOK)
	b.deleteTopic(letterTopic)
	backendtest.AwaitStatus(t, address, "/readyz", http.StatusServiceUnavailable)
	b.broker.CreateTopic(t, letterTopic)
	backendtest.AwaitStatus(t, address, "/readyz", http.StatusOK)
	b.redis.Stop(t)
	backendtest.AwaitStatus(t, address, "/readyz", http.StatusServiceUnavailable)
	backendtest.AwaitStatus(t, address, "/healthz", http.StatusOK)
}

// Without its subscription the worker waits, and is not ready: readiness names what is missing.
func TestNoSubscription(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	address := backendtest.Address(t)
	b.start(map[string]string{"PACKFINDERZ_WORKER_LISTEN": address, "PACKFINDERZ_PUBSUB_DOMAIN_SUBSCRIPTION": "another"})
	awaitNotReady(t, address, "gcloud pubsub subscriptions create another --topic pf-domain-events --enable-message-ordering --project "+
		pubsubtest.Project+"), or name another in PACKFINDERZ_PUBSUB_DOMAIN_SUBSCRIPTION")
	b.broker.Subscribe(t, "another")
	backendtest.AwaitStatus(t, address, "/readyz", http.StatusOK)
}

// A subscription that is deleted is missed at once, though Pub/Sub leaves the worker's stream open for a while. The next answer says
// so: nothing is waited for.
func TestSubscriptionDeleted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	address := backendtest.Address(t)
	b.start(map[string]string{"PACKFINDERZ_WORKER_LISTEN": address})
	backendtest.AwaitStatus(t, address, "/readyz", http.StatusOK)
	name := "projects/" + pubsubtest.Project + "/subscriptions/" + subscription
	if _, err := b.broker.Server.GServer.DeleteSubscription(t.Context(), &pubsubpb.DeleteSubscriptionRequest{Subscription: name}); err != nil {
		t.Fatal(err)
	}
	if answer := backendtest.Answer(t, "http://"+address+"/readyz"); !strings.Contains(answer, "gcloud pubsub subscriptions create "+subscription) {
		t.Errorf("readiness says %s", answer)
	}
	if b.log.Count("nothing can be received") == 0 {
		t.Error("the log does not say that nothing can be received")
	}
	b.broker.Subscribe(t, subscription)
	backendtest.AwaitStatus(t, address, "/readyz", http.StatusOK)
}

// awaitNotReady waits for a reason, which has no secret.
func awaitNotReady(t *testing.T, address, why string) {
	t.Helper()
	var answer string
	await.Until(t, "readiness to say: "+why, func() bool {
		answer = backendtest.Answer(t, "http://"+address+"/readyz")
		return strings.Contains(answer, why)
	})
	if strings.Contains(answer, "s3cret") {
		t.Errorf("a secret is told: %s", answer)
	}
	if status := backendtest.Request(t, http.MethodGet, "http://"+address+"/readyz", ""); status != http.StatusServiceUnavailable {
		t.Errorf("the status is %d", status)
	}
}

// A Redis that does not let the worker in is not one that does not answer: readiness and the log have its words, and no password.
func TestRedisRefuses(t *testing.T) {
	t.Parallel()
	for says, url := range map[string]string{
		"Redis: WRONGPASS": "redis://nobody:s3cret@", "Redis: NOAUTH": "redis://",
	} {
		b := newBench(t)
		if err := b.redis.Client().ConfigSet(t.Context(), "requirepass", "another").Err(); err != nil {
			t.Fatal(err)
		}
		address := backendtest.Address(t)
		worker := b.start(map[string]string{"PACKFINDERZ_REDIS_URL": url + b.redis.Address(), "PACKFINDERZ_WORKER_LISTEN": address})
		awaitNotReady(t, address, says)
		if b.log.Count(says) == 0 || b.log.Count("s3cret") > 0 {
			t.Errorf("the log does not say %s, or a secret", says)
		}
		worker.Stop()
	}
}

// A Redis that is full answers and takes nothing: the worker is not ready.
func TestFullRedis(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	address := backendtest.Address(t)
	b.start(map[string]string{"PACKFINDERZ_WORKER_LISTEN": address})
	backendtest.AwaitStatus(t, address, "/readyz", http.StatusOK)
	limit := func(bytes string) {
		t.Helper()
		if err := b.redis.Client().ConfigSet(t.Context(), "maxmemory", bytes).Err(); err != nil {
			t.Fatal(err)
		}
	}
	limit("1")
	awaitNotReady(t, address, "Redis: OOM")
	limit("0")
	backendtest.AwaitStatus(t, address, "/readyz", http.StatusOK)
}

// A worker that may not write notifications, or has no table for them, is not ready.
func TestLostRights(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	address := backendtest.Address(t)
	b.start(map[string]string{"PACKFINDERZ_WORKER_LISTEN": address})
	backendtest.AwaitStatus(t, address, "/readyz", http.StatusOK)
	testdb.Exec(t, b.pool, `ALTER TABLE notifications RENAME TO away`)
	awaitNotReady(t, address, `PostgreSQL: ERROR: relation "notifications" does not exist`)
	testdb.Exec(t, b.pool, `ALTER TABLE away RENAME TO notifications`)
	backendtest.AwaitStatus(t, address, "/readyz", http.StatusOK)
	role := testdb.Connect(t, b.url).Config().ConnConfig.User
	testdb.Exec(t, b.pool, `REVOKE INSERT (message) ON notifications FROM `+role)
	awaitNotReady(t, address, "PostgreSQL: ERROR: permission denied for table notifications")
}

// A table that was changed under the worker takes no notification, though the statement can still be planned: the worker is not ready,
// the event is no dead letter, and is handled when the table is mended.
func TestChangedTable(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.impatient()
	address := backendtest.Address(t)
	b.start(map[string]string{"PACKFINDERZ_WORKER_LISTEN": address})
	backendtest.AwaitStatus(t, address, "/readyz", http.StatusOK)
	testdb.Exec(t, b.pool, `ALTER TABLE notifications ADD campaign text NOT NULL`)
	message := backendtest.Pending(t)
	b.send(message)
	awaitNotReady(t, address, `PostgreSQL: ERROR: null value in column "campaign"`)
	testdb.Exec(t, b.pool, `ALTER TABLE notifications DROP campaign`)
	b.awaitNotified(message.ID)
	backendtest.AwaitStatus(t, address, "/readyz", http.StatusOK)
}

// deleteTopic takes a topic away.
func (b *bench) deleteTopic(topic string) {
	b.Helper()
	if _, err := b.broker.Server.GServer.DeleteTopic(b.Context(), &pubsubpb.DeleteTopicRequest{Topic: pubsubtest.TopicPath(topic)}); err != nil {
		b.Fatal(err)
	}
}
