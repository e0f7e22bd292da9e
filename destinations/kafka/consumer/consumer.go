// Package consumer consumes from Apache Kafka, as a member of a consumer group.
//
// Kafka only knows how far a group has read each partition. This package knows which records after that are handled,
// and which have failed and are tried again.
package consumer

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/internal/consuming"
)

// Consumer handles the records of its topics.
type Consumer struct {
	config    Config
	options   []kgo.Opt
	processor *consume.Processor
	log       *slog.Logger
}

// New returns a consumer. It does not connect.
func New(config Config) (*Consumer, error) {
	config = config.withDefaults()
	options, brokerErr := config.Broker.ClientOptions()
	processor, processErr := consume.New(config.Process)
	for _, err := range []error{brokerErr, config.validate(), processErr} {
		if err != nil {
			return nil, fmt.Errorf("kafka consumer: %w", err)
		}
	}
	config.Process = processor.Config()
	return &Consumer{config, options, processor, config.Process.Logger.With("group", config.Group)}, nil
}

// Run handles records until ctx ends. Then it takes no more, waits for running handlers, commits what they handled,
// leaves the group and returns nil. It waits while the cluster is unavailable or a topic is missing. After the grace
// it cancels the handlers' context, and waits until they return.
func (c *Consumer) Run(ctx context.Context) error {
	if err := c.awaitTopics(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	handling, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	r := &run{
		Consumer: c, stopping: ctx, handling: handling, changed: consuming.NewSignal(),
		queues: consuming.NewQueues(c.config.Process.Concurrency), partitions: make(map[place]*partition),
	}
	client, err := kgo.NewClient(slices.Concat(c.options, r.options())...)
	if err != nil {
		return fmt.Errorf("kafka consumer: %w", err)
	}
	r.client = client
	stopCommitting := consuming.Every(commitInterval, r.commit)
	r.receive(ctx)
	grace := time.AfterFunc(c.config.Process.Grace, abandon)
	r.settle(r.ending(func(place) bool { return true }))
	r.queues.Stop()
	grace.Stop()
	stopCommitting()
	r.commit()
	r.leave()
	return nil
}

// options returns the client's options, besides those by which it reaches the cluster.
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
		kgo.RebalanceTimeout(c.Process.Grace + 30*time.Second),
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
