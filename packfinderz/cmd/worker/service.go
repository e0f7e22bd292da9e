package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/jackc/pgx/v5/pgxpool"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/destinations/gcppubsub"
	"github.com/packfinderz/outbox/destinations/gcppubsub/consumer"
	"github.com/packfinderz/outbox/packfinderz/internal/compliance"
	"github.com/packfinderz/outbox/packfinderz/internal/env"
	"github.com/packfinderz/outbox/packfinderz/internal/httpserver"
	"github.com/packfinderz/outbox/packfinderz/internal/metrics"
	"github.com/packfinderz/outbox/packfinderz/internal/outage"
	"github.com/packfinderz/outbox/packfinderz/internal/pubsub"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/idempotency"
)

// anyNumber of deliveries may fail. An event that can never be handled becomes a dead letter at once. Any other failure
// is an outage, which must not make dead letters however long it lasts.
const anyNumber = 1_000_000_000

// work consumes until ctx ends. It waits for servers that are unavailable, and fails only if it can never work.
func work(ctx context.Context, config config, log *slog.Logger) (err error) {
	pool, err := pgxpool.New(ctx, config.database)
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	defer pool.Close()
	if err := compliance.Fits(ctx, pool, log); err != nil {
		return err
	}
	remembers, err := openRedis(config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remembers.Close()) }()
	events, err := idempotency.NewManager(remembers, idempotency.Config{TTL: config.remember, Processing: config.processing, Logger: log})
	if err != nil {
		return err
	}
	if err := events.Ping(ctx); err != nil {
		log.Warn(outage.Reason("Redis", err)+"; waiting for it", "error", err)
	}
	handler, err := compliance.New(pool, events, log)
	if err != nil {
		return err
	}

	letters, err := openDeadLetters(ctx, config, log)
	if err != nil {
		return err
	}
	defer func() { _ = letters.Close() }() // all are published
	counted := &numbers{}
	process := consume.Config{
		Handlers: handler, Unknown: consume.IgnoreUnknown, Concurrency: config.concurrency, Logger: log, Hooks: []any{counted}, MaxDeliveries: anyNumber,
		DeadLetters: letters, DeadLetterTopic: config.deadLetters,
	}
	consumer, err := consumer.New(consumer.Config{
		Broker: config.pubsub, Subscription: config.subscription, AckDeadline: config.ackDeadline, Process: process,
	})
	if err != nil {
		return err
	}

	mux := http.NewServeMux()
	httpserver.Health(mux,
		httpserver.Check{Name: "PostgreSQL", Ping: func(ctx context.Context) error {
			return cmp.Or(compliance.Ready(ctx, pool), handler.Check())
		}},
		httpserver.Check{Name: "Redis", Ping: events.Ping},
		httpserver.Check{Name: "Pub/Sub", Ping: func(ctx context.Context) error {
			return errors.Join(receives(ctx, consumer, &config), lettersReach(ctx, letters, &config))
		}, Tell: true})
	metrics.Handle(mux, counted.write)
	server, err := httpserver.Start(listenVariable, config.listen, mux, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	return consumer.Run(ctx)
}

// receives checks the subscription. If it is missing, the error says how to create it, even while the worker waits.
func receives(ctx context.Context, from *consumer.Consumer, config *config) error {
	err := from.Ping(ctx)
	if status.Code(err) == codes.NotFound {
		return fmt.Errorf("there is no subscription %[1]s: create it (gcloud pubsub subscriptions create %[1]s --topic %[2]s "+
			"--enable-message-ordering --project %[3]s), or name another in %[4]s",
			config.subscription, config.domain, config.pubsub.Project, env.DomainSubscriptionVariable)
	}
	return err
}

// lettersReach checks the dead-letter topic.
func lettersReach(ctx context.Context, letters *gcppubsub.Publisher, config *config) error {
	missing, err := letters.MissingTopics(ctx, config.deadLetters)
	if err == nil && len(missing) > 0 {
		return pubsub.MissingTopic(config.pubsub.Project, config.deadLetters, env.DeadLetterTopicVariable)
	}
	return cmp.Or(err, letters.PingTopic(ctx, config.deadLetters))
}

// openDeadLetters refuses to start without the dead-letter topic: an event that can never be handled would be
// delivered for ever, and block its key.
func openDeadLetters(ctx context.Context, config config, log *slog.Logger) (*gcppubsub.Publisher, error) {
	letters, err := pubsub.Open(config.pubsub)
	if err != nil {
		return nil, err
	}
	missing, err := letters.MissingTopics(ctx, config.deadLetters)
	if err != nil {
		log.Warn("Pub/Sub does not answer yet", "error", err)
	}
	if len(missing) > 0 {
		err := pubsub.MissingTopic(config.pubsub.Project, config.deadLetters, env.DeadLetterTopicVariable)
		return nil, errors.Join(fmt.Errorf("%w: %w", env.ErrUsage, err), letters.Close())
	}
	return letters, nil
}
