package main

import (
	"slices"
	"time"

	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/consume/inbox"
	"github.com/packfinderz/outbox/destinations/gcppubsub"
	"github.com/packfinderz/outbox/destinations/gcppubsub/consumer"
	"github.com/packfinderz/outbox/packfinderz/internal/env"
	"github.com/packfinderz/outbox/packfinderz/internal/program"
	"github.com/packfinderz/outbox/packfinderz/internal/pubsub"
)

type config struct {
	database, redis      string
	redisInsecure        bool
	pubsub               gcppubsub.Config
	subscription         string
	domain, deadLetters  string // topics
	remember, processing time.Duration
	ackDeadline          time.Duration
	concurrency          int
	listen               string
}

// listenVariable is the address of the health checks and metrics.
const listenVariable = "PACKFINDERZ_WORKER_LISTEN"

func readConfig(lookup program.Lookup) (config, error) {
	r := env.NewReader(lookup)
	c := config{
		// The worker has a database role of its own; see migrations/roles.
		database:      r.Database("PACKFINDERZ_WORKER_DATABASE_URL"),
		redis:         r.Redis(),
		redisInsecure: r.RedisInsecure(),
		pubsub:        pubsub.Read(r),
		subscription:  r.DomainSubscription(),
		deadLetters:   r.DeadLetterTopic(),
		remember:      idempotencyTTL(r),
		processing:    r.Duration(processingName, inbox.DefaultProcessing, time.Second, env.Endless),
		ackDeadline:   r.Duration("PACKFINDERZ_WORKER_ACK_DEADLINE", consumer.DefaultAckDeadline, consumer.MinAckDeadline, consumer.MaxAckDeadline),
		concurrency:   r.Int("PACKFINDERZ_WORKER_CONCURRENCY", consume.DefaultConcurrency, 1, 1000),
		listen:        r.Listen("127.0.0.1:8082", listenVariable),
	}
	if c.processing > c.remember {
		r.Refuse(processingName, "is %s, and handled events are remembered for only %s: make it shorter, or %s longer", c.processing, c.remember, ttlName)
	}
	topics := r.Topics()
	c.domain = topics.Domain
	if slices.Contains(topics.Names(), c.deadLetters) {
		// A dead letter would come back, become a dead letter again, and so on for ever.
		r.Refuse(env.DeadLetterTopicVariable, "is %q, a topic of events; dead letters need one of their own", c.deadLetters)
	}
	return c, r.Err()
}
