package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/packfinderz/outbox/consume"
)

// Defaults of ConsumerConfig.
const (
	DefaultConcurrency    = 16
	DefaultGrace          = 30 * time.Second
	DefaultSessionTimeout = 45 * time.Second
)

// ConsumerConfig says what to consume, and what to do with it.
type ConsumerConfig struct {
	// Config is how to reach the cluster; ParseURL makes it. Create makes topics that are not
	// there.
	Config
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
	config    ConsumerConfig
	processor *consume.Processor
	log       *slog.Logger
}

// NewConsumer checks the configuration. The cluster need not be there.
func NewConsumer(config ConsumerConfig) (*Consumer, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("kafka consumer: %w", err)
	}
	if _, err := config.options(); err != nil {
		return nil, fmt.Errorf("kafka consumer: %w", err)
	}
	processor, err := consume.New(config.Process)
	if err != nil {
		return nil, fmt.Errorf("kafka consumer: %w", err)
	}
	return &Consumer{config, processor, config.Process.Logger.With("group", config.Group)}, nil
}

// withDefaults fills in what is zero and refuses what cannot work.
func (c ConsumerConfig) withDefaults() (ConsumerConfig, error) {
	var err error
	if c.Config, err = c.Config.withDefaults(); err != nil {
		return c, err
	}
	switch {
	case c.Group == "":
		return c, errors.New("no Group is named")
	case len(c.Topics) == 0:
		return c, errors.New("no Topics are named")
	case c.Concurrency < 0 || c.Grace < 0 || c.SessionTimeout < 0:
		return c, errors.New("a Concurrency, Grace or SessionTimeout below zero")
	}
	for _, topic := range c.Topics {
		if err := checkName(topic); err != nil {
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
	if c.Process.Logger == nil {
		c.Process.Logger = slog.Default()
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
	options, err := c.config.options()
	if err != nil {
		return fmt.Errorf("kafka consumer: %w", err)
	}
	client, err := kgo.NewClient(append(options, r.options()...)...)
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

// options are the client's, beside those that a publisher has too.
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
