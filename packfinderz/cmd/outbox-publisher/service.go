package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/gcppubsub"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/ops"
	"github.com/packfinderz/outbox/packfinderz/internal/env"
	"github.com/packfinderz/outbox/packfinderz/internal/httpserver"
	"github.com/packfinderz/outbox/packfinderz/internal/metrics"
	"github.com/packfinderz/outbox/packfinderz/internal/outage"
	"github.com/packfinderz/outbox/packfinderz/internal/pubsub"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/registry"
	"github.com/packfinderz/outbox/pgstore"
)

const (
	// publishTimeout bounds the publishing of one batch. A stop waits for it, and Heroku kills after 30 s.
	publishTimeout = 20 * time.Second
	// checkTimeout bounds the checks before the start.
	checkTimeout = 10 * time.Second
)

// publish relays until ctx ends. It waits for servers that are unavailable, and fails only if it can never work.
func publish(ctx context.Context, lookup func(string) (string, bool), log *slog.Logger) (err error) {
	config, err := readConfig(lookup)
	if err != nil {
		return err
	}
	routes, err := registry.New(config.topics)
	if err != nil {
		return err
	}
	tables, store, err := open(ctx, config.database, config.layout, pgstore.Config{MaxAttempts: config.maxAttempts})
	if err != nil {
		return err
	}
	defer tables.Pool().Close()
	broker, err := pubsub.Open(config.pubsub)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, broker.Close()) }()
	if err := check(ctx, store, broker, &config, log); err != nil {
		return err
	}
	counted := &numbers{pool: tables.Pool(), store: store, dlq: dlqSQL(config.layout)}
	relay, err := outbox.NewRelay(outbox.RelayConfig{
		Store: store, Publisher: broker, Registry: routes,
		BatchSize: config.batchSize, Poll: config.poll, PublishTimeout: publishTimeout,
		// One batch at a time, and its rows in their order.
		Concurrency: 1,
		Logger:      log, AttemptLevel: slog.LevelInfo, Hooks: []any{counted},
	})
	if err != nil {
		return err
	}

	mux := http.NewServeMux()
	httpserver.Health(mux, checks(tables, relay, func(ctx context.Context) (missing, err error) { return missingTopics(ctx, broker, &config) })...)
	metrics.Handle(mux, counted.write)
	server, err := httpserver.Start(listenVariable, config.listen, mux, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	return relay.Run(ctx)
}

// open opens the tables and the relay's store, with their own pool. It does not connect.
func open(ctx context.Context, database string, layout layouts.Layout, config pgstore.Config) (*ops.Outbox, *pgstore.Store, error) {
	pool, err := pgxpool.New(ctx, database)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	tables, err := ops.Table(pool, layout)
	var store *pgstore.Store
	if err == nil {
		store, err = pgstore.New(pool, layout, config)
	}
	if err != nil {
		pool.Close()
		return nil, nil, err
	}
	return tables, store, nil
}

// check refuses to start if the tables are not the outbox's, or if a topic is missing: its events would only wait. A
// server that does not answer yet is no reason to refuse.
func check(ctx context.Context, store *pgstore.Store, broker *gcppubsub.Publisher, config *config, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	err := store.Verify(ctx)
	switch {
	case errors.Is(err, pgstore.ErrNoTable):
		return fmt.Errorf("%w: %w; api migrate does it, too, or says what is in its way", env.ErrUsage, err)
	case errors.Is(err, pgstore.ErrMismatch):
		return fmt.Errorf("%w: %w", env.ErrUsage, err)
	case err != nil:
		log.Warn(outage.Reason("PostgreSQL", err)+"; waiting for it", "error", err)
	}
	missing, err := missingTopics(ctx, broker, config)
	if err != nil {
		log.Warn("Pub/Sub does not answer yet", "error", err)
	}
	if missing != nil {
		return fmt.Errorf("%w: %w", env.ErrUsage, missing)
	}
	return nil
}

// missingTopics says how to create the missing topics; err is set if Pub/Sub does not answer.
func missingTopics(ctx context.Context, broker *gcppubsub.Publisher, config *config) (missing, err error) {
	topics := slices.Compact(slices.Sorted(slices.Values(config.topics.Names()))) // they may share a name
	names, err := broker.MissingTopics(ctx, topics...)
	errs := make([]error, len(names))
	for i, topic := range names {
		errs[i] = pubsub.MissingTopic(config.pubsub.Project, topic, env.TopicVariables(config.topics, topic)...)
	}
	return errors.Join(errs...), err
}
