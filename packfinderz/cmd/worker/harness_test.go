package main

import (
	"context"
	"maps"
	"os"
	"path"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/gcppubsub"
	"github.com/packfinderz/outbox/destinations/gcppubsub/pubsubtest"
	"github.com/packfinderz/outbox/destinations/redis/redistest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/consumetest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
	"github.com/packfinderz/outbox/packfinderz/internal/backendtest"
)

// asProgram has this binary be the worker.
const asProgram = "TEST_AS_THE_WORKER"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	backendtest.Main(m)
}

const (
	subscription = "pf-domain-events-worker"
	letterTopic  = "pf-domain-events-dead"
)

// bench is all that a worker needs.
type bench struct {
	*testing.T
	url     string // of the worker's role
	pool    *pgxpool.Pool
	redis   *redistest.Broker
	broker  *pubsubtest.Broker
	publish *gcppubsub.Publisher
	log     *consumetest.Log
}

func newBench(t *testing.T) *bench {
	t.Helper()
	url, pool := backendtest.Database(t)
	b := &bench{
		T: t, url: backendtest.WorkerURL(t, url, pool), pool: pool,
		redis: redistest.New(t), broker: pubsubtest.New(t), log: consumetest.NewLog(),
	}
	b.broker.Subscribe(t, subscription)
	b.broker.CreateTopic(t, letterTopic)
	b.publish = pubsubtest.Open(t, b.broker.URL())
	return b
}

// impatient makes the subscription one with a retry policy, for which this server does not wait.
func (b *bench) impatient() {
	b.Helper()
	name := "projects/" + pubsubtest.Project + "/subscriptions/" + subscription
	if _, err := b.broker.Server.GServer.DeleteSubscription(b.Context(), &pubsubpb.DeleteSubscriptionRequest{Subscription: name}); err != nil {
		b.Fatal(err)
	}
	_, err := b.broker.Server.GServer.CreateSubscription(b.Context(), &pubsubpb.Subscription{
		Name: name, Topic: pubsubtest.TopicPath(publishertest.Topic), EnableMessageOrdering: true, RetryPolicy: &pubsubpb.RetryPolicy{},
	})
	if err != nil {
		b.Fatal(err)
	}
}

// environment is a worker's, with some of it a test's own.
func (b *bench) environment(more map[string]string) map[string]string {
	all := map[string]string{
		"PACKFINDERZ_DATABASE_URL": b.url, "PACKFINDERZ_REDIS_URL": b.redis.URL(), "PACKFINDERZ_PUBSUB_PROJECT": pubsubtest.Project,
		"PUBSUB_EMULATOR_HOST": b.broker.Endpoint(), "PACKFINDERZ_WORKER_LISTEN": "127.0.0.1:0",
	}
	maps.Copy(all, more)
	return all
}

// start runs a worker until the test ends.
func (b *bench) start(more map[string]string) *consumetest.Running {
	b.Helper()
	return backendtest.Start(b, b.environment(more), b.log.Logger(), run)
}

// refusal runs a worker that must not start, and returns why it does not. One that does start is ended at once: nothing else would.
func (b *bench) refusal(more map[string]string) error {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	log, ended := consumetest.NewLog(), make(chan error, 1)
	go func() { ended <- run(ctx, nil, backendtest.Lookup(b.environment(more)), log.Logger()) }()
	started := func() bool { return log.Count("msg=listening") > 0 }
	await.Until(b, "the worker to refuse or to start", func() bool { return len(ended) > 0 || started() })
	cancel()
	err := <-ended
	if started() {
		b.Error("the worker started")
	}
	return err
}

// send publishes events, as the publisher does.
func (b *bench) send(messages ...outbox.Message) {
	b.Helper()
	for _, err := range b.publish.Publish(b.Context(), messages) {
		if err != nil {
			b.Fatal(err)
		}
	}
}

// awaitNotified waits until events have their notifications, and Pub/Sub need not deliver them any more.
func (b *bench) awaitNotified(events ...uuid.UUID) {
	b.Helper()
	await.Until(b, "the notifications", func() bool {
		return backendtest.Count(b, b.pool, `SELECT count(*) FROM notifications WHERE event_id = ANY ($1)`, events) == len(events)
	})
	b.awaitAcked(events...)
}

func (b *bench) awaitAcked(events ...uuid.UUID) {
	b.Helper()
	await.Until(b, "the acknowledgements", func() bool {
		left := len(events)
		for _, event := range events {
			if message := b.message(event); message != nil && message.Acks > 0 {
				left--
			}
		}
		return left == 0
	})
}

// message is an event as Pub/Sub has it.
func (b *bench) message(event uuid.UUID) *pstest.Message {
	for _, m := range b.broker.Server.Messages() {
		if m.Attributes["event_id"] == event.String() && path.Base(m.Topic) != letterTopic {
			return m
		}
	}
	return nil
}
