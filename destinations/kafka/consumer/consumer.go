// Package consumer consumes from Apache Kafka, as a member of a consumer group.
//
// Kafka knows of a group only how far it has read each partition. Which records behind that are
// handled, and which have failed and are tried again, is kept here.
package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/destinations/kafka"
	"github.com/packfinderz/outbox/destinations/kafka/internal/topic"
)

// Defaults of Config.
const (
	DefaultConcurrency    = 16
	DefaultGrace          = 30 * time.Second
	DefaultSessionTimeout = 45 * time.Second
)

// Config says what to consume, and what to do with it.
type Config struct {
	// Broker is how to reach the cluster; kafka.ParseURL makes it. Create makes topics that are
	// not there.
	Broker kafka.Config
	// Group is the consumer group. Programs of the same group share the partitions. A new group
	// begins with the oldest records.
	Group string
	// Topics are what to read.
	Topics []string
	// Concurrency is how many records are handled at once; about as many wait. Default 16.
	Concurrency int
	// Grace is how long Run waits, when it is to end or a partition is taken away, for what is
	// being handled. Default 30 s.
	Grace time.Duration
	// SessionTimeout is how long after a consumer was killed its partitions go to another.
	// Default 45 s. A handler may take longer.
	SessionTimeout time.Duration
	// Process is what is done with the records.
	Process consume.Config
}

// Consumer handles the records of some topics.
type Consumer struct {
	config    Config
	options   []kgo.Opt
	processor *consume.Processor
	log       *slog.Logger
}

// New checks the configuration. The cluster need not be there.
func New(config Config) (*Consumer, error) {
	c, err := newConsumer(config)
	if err != nil {
		return nil, fmt.Errorf("kafka consumer: %w", err)
	}
	return c, nil
}

func newConsumer(config Config) (*Consumer, error) {
	options, err := config.Broker.ClientOptions()
	if err != nil {
		return nil, err
	}
	if config, err = config.withDefaults(); err != nil {
		return nil, err
	}
	processor, err := consume.New(config.Process)
	if err != nil {
		return nil, err
	}
	config.Process = processor.Config()
	return &Consumer{config, options, processor, config.Process.Logger.With("group", config.Group)}, nil
}

// withDefaults fills in what is zero and refuses what cannot work.
func (c Config) withDefaults() (Config, error) {
	switch {
	case c.Group == "":
		return c, errors.New("no Group is named")
	case len(c.Topics) == 0:
		return c, errors.New("no Topics are named")
	case c.Concurrency < 0 || c.Grace < 0 || c.SessionTimeout < 0:
		return c, errors.New("a Concurrency, Grace or SessionTimeout below zero")
	}
	for _, name := range c.Topics {
		if err := topic.Check(name); err != nil {
			return c, err
		}
	}
	if c.Concurrency == 0 {
		c.Concurrency = DefaultConcurrency
	}
	if c.Grace == 0 {
		c.Grace = DefaultGrace
	}
	if c.SessionTimeout == 0 {
		c.SessionTimeout = DefaultSessionTimeout
	}
	return c, nil
}

// Run handles records until the context ends. Then it takes no more, waits for what is being
// handled, commits it, leaves the group and returns nil. While the cluster is away, or a topic
// is not there, it waits.
//
// When the grace is over the context of the handlers ends, and Run waits until they have seen it.
func (c *Consumer) Run(ctx context.Context) error {
	if err := c.awaitTopics(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	handling, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	r := newRun(c, ctx, handling)
	client, err := kgo.NewClient(slices.Concat(c.options, r.options())...)
	if err != nil {
		return fmt.Errorf("kafka consumer: %w", err)
	}
	r.client = client
	committing := r.commitEvery(commitInterval)
	r.receive(ctx)
	grace := time.AfterFunc(c.config.Grace, abandon)
	r.settle(r.ending(r.all()))
	r.queues.Stop()
	grace.Stop()
	committing.stop()
	r.commit()
	r.leave()
	return nil
}

// options are the client's, beside those by which it reaches the cluster.
func (r *run) options() []kgo.Opt {
	c := &r.config
	return []kgo.Opt{
		kgo.ConsumerGroup(c.Group),
		kgo.ConsumeTopics(c.Topics...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.SessionTimeout(c.SessionTimeout),
		kgo.HeartbeatInterval(min(c.SessionTimeout/10, 3*time.Second)),
		// A partition that is taken away is waited for as long as Grace.
		kgo.RebalanceTimeout(c.Grace + 30*time.Second),
		kgo.DisableAutoCommit(),
		// Between a poll and AllowRebalance no partition changes hands.
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, list map[string][]int32) { r.assign(list) }),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, list map[string][]int32) { r.revoke(list) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, list map[string][]int32) { r.lose(list) }),
		kgo.FetchMaxBytes(8 << 20),
		kgo.FetchMaxPartitionBytes(1 << 20),
		kgo.WithHooks(&watch{log: r.log}),
	}
}
