package main

import (
	"time"

	"github.com/packfinderz/outbox/destinations/gcppubsub"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/packfinderz/internal/env"
	"github.com/packfinderz/outbox/packfinderz/internal/pubsub"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/registry"
)

type config struct {
	database    string
	layout      layouts.Layout
	pubsub      gcppubsub.Config
	topics      registry.Topics
	batchSize   int
	poll        time.Duration
	maxAttempts int
	listen      string
}

// listenVariable is the address of the health checks and metrics.
const listenVariable = "PACKFINDERZ_PUBLISHER_LISTEN"

func readConfig(lookup func(string) (string, bool)) (config, error) {
	r := env.NewReader(lookup)
	layout := r.Layout()
	c := config{
		database:  r.Database(),
		layout:    layout,
		pubsub:    pubsub.Read(r),
		topics:    r.Topics(),
		batchSize: r.Int("PACKFINDERZ_OUTBOX_PUBLISH_BATCH_SIZE", 50, 1, 10_000),
		// The relay accepts at most a third of the lease.
		poll:        time.Duration(r.Int("PACKFINDERZ_OUTBOX_PUBLISH_POLL_MS", 500, 5, 10_000)) * time.Millisecond,
		maxAttempts: r.Int("PACKFINDERZ_OUTBOX_MAX_ATTEMPTS", layout.MaxAttempts, 1, 1_000_000),
		listen:      r.Listen("127.0.0.1:8081", listenVariable),
	}
	// The worker would refuse to start. Here it would be noticed only when dead letters arrive among the events.
	dead := r.DeadLetterTopic()
	for _, name := range env.TopicVariables(c.topics, dead) {
		r.Refuse(name, "is %q, which is %s, the topic of the worker's dead letters: events need another", dead, env.DeadLetterTopicVariable)
	}
	return c, r.Err()
}

type cleanupConfig struct {
	database string
	layout   layouts.Layout
	// published and dead are how long published rows and dead letters are kept; zero for ever.
	published, dead time.Duration
}

const (
	defaultRetention = 30 * 24 * time.Hour
	leastRetention   = time.Hour
)

func readCleanupConfig(lookup func(string) (string, bool)) (cleanupConfig, error) {
	r := env.NewReader(lookup)
	c := cleanupConfig{
		database:  r.Database(),
		layout:    r.Layout(),
		published: r.Duration("PACKFINDERZ_OUTBOX_RETENTION", defaultRetention, leastRetention, env.Endless),
		// By default, nothing is deleted that nobody has looked at.
		dead: r.Duration("PACKFINDERZ_OUTBOX_DLQ_RETENTION", 0, leastRetention, env.Endless),
	}
	return c, r.Err()
}
