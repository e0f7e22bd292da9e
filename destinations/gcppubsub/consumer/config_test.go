package consumer_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apiv1 "cloud.google.com/go/pubsub/v2/apiv1"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/destinations/gcppubsub"
	"github.com/packfinderz/outbox/destinations/gcppubsub/consumer"
	"github.com/packfinderz/outbox/destinations/gcppubsub/pubsubtest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/consumetest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

func TestConfig(t *testing.T) {
	t.Parallel()
	good := consumer.Config{
		Broker: gcppubsub.Config{Project: "shop", Endpoint: "127.0.0.1:1", Insecure: true}, Subscription: subscription,
		Process: consume.Config{Handlers: consumetest.Handler(nil)},
	}
	if _, err := consumer.New(good); err != nil {
		t.Fatal(err)
	}
	for words, change := range map[string]func(*consumer.Config){
		"project is missing":             func(c *consumer.Config) { c.Broker.Project = "" },
		"Subscription is missing":        func(c *consumer.Config) { c.Subscription = "" },
		"name of a Pub/Sub subscription": func(c *consumer.Config) { c.Subscription = "a b" },
		"name of a Pub/Sub topic":        func(c *consumer.Config) { c.Topic = "a b" },
		"Topic is missing":               func(c *consumer.Config) { c.Broker.Create = true },
		"Concurrency is -1":              func(c *consumer.Config) { c.Process.Concurrency = -1 },
		"AckDeadline is 1s":              func(c *consumer.Config) { c.AckDeadline = time.Second },
		"Handlers is missing":            func(c *consumer.Config) { c.Process.Handlers = nil },
		"DeadLetterTopic go together":    func(c *consumer.Config) { c.Process.DeadLetterTopic = "x" },
		"credentials: open none.json":    func(c *consumer.Config) { c.Broker.Insecure, c.Broker.Credentials = false, "none.json" },
		"Client is for publishers": func(c *consumer.Config) {
			c.Broker = gcppubsub.Config{Project: "shop", Client: new(apiv1.TopicAdminClient)}
		},
		"Config.Grace is -1ns": func(c *consumer.Config) { c.Process.Grace = -1 },
	} {
		config := good
		change(&config)
		if _, err := consumer.New(config); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%v, want %s", err, words)
		}
	}
}

// Create makes topic and subscription, and the consumer works with them.
func TestCreate(t *testing.T) {
	t.Parallel()
	broker := pubsubtest.New(t)
	got := make(chan outbox.Message, 1)
	config := consumerConfig(t, broker.URL(), consumetest.Handler(func(_ context.Context, m outbox.Message) error { got <- m; return nil }))
	config.Broker.Create, config.Topic, config.ExactlyOnce = true, "invoices", true
	config.Process.Retry = outbox.RetryPolicy{Base: 2 * time.Second, Max: time.Hour}
	run(t, config)
	name := "projects/" + pubsubtest.Project + "/subscriptions/" + subscription
	var made *pubsubpb.Subscription
	await.Until(t, "the subscription", func() (is bool) {
		var err error
		made, err = broker.Server.GServer.GetSubscription(t.Context(), &pubsubpb.GetSubscriptionRequest{Subscription: name})
		return err == nil
	})
	policy := made.GetRetryPolicy()
	if !made.GetEnableMessageOrdering() || !made.GetEnableExactlyOnceDelivery() || made.GetAckDeadlineSeconds() != 10 ||
		policy.GetMinimumBackoff().AsDuration() != 2*time.Second || policy.GetMaximumBackoff().AsDuration() != 10*time.Minute {
		t.Errorf("made %v", made)
	}
	messages := publishertest.Messages(1)
	messages[0].Topic = "invoices"
	publishAll(t, broker, messages)
	if m := <-got; m.Topic != "invoices" {
		t.Errorf("handled %+v", m)
	}
	await.Until(t, "the event to be acknowledged", func() bool { return acked(broker, "invoices") == 1 })
}

// A consumer runs once at a time.
func TestRunsOnce(t *testing.T) {
	t.Parallel()
	broker := subscribed(t)
	consumer, err := consumer.New(consumerConfig(t, broker.URL(), consumetest.Handler(nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	errs := make(chan error, 2)
	for range 2 {
		go func() { errs <- consumer.Run(ctx) }()
	}
	if err := <-errs; err == nil || !strings.Contains(err.Error(), "runs already") {
		t.Errorf("the second says %v", err)
	}
	cancel()
	if err := <-errs; err != nil {
		t.Error(err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := consumer.Run(ctx); err != nil {
		t.Error(fmt.Errorf("again: %w", err))
	}
}
