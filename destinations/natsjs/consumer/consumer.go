// Package consumer handles the messages of a stream of NATS JetStream.
package consumer

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/internal/consuming"
)

// Consumer handles the messages of a stream.
type Consumer struct {
	config    Config
	options   nats.Options
	processor *consume.Processor
	log       *slog.Logger
}

// New checks the configuration. The server need not be there.
func New(config Config) (*Consumer, error) {
	config = config.withDefaults()
	options, brokerErr := config.Broker.ClientOptions()
	processor, processErr := consume.New(config.Process)
	for _, err := range []error{brokerErr, config.validate(), processErr} {
		if err != nil {
			return nil, fmt.Errorf("natsjs consumer: %w", err)
		}
	}
	config.Process = processor.Config()
	log := config.Process.Logger.With("topics", config.Topics, "consumer", config.Durable)
	return &Consumer{config, options, processor, log}, nil
}

// Run handles messages until the context ends. Then it takes no more, waits for what is being
// handled, gives the rest back to the stream and returns nil. While the server is away it waits.
// It fails only when there is no such durable consumer to begin with, or one that cannot do.
//
// When the grace is over the context of the handlers ends, and Run waits until they have seen it.
func (c *Consumer) Run(ctx context.Context) error {
	feed, err := c.open(ctx)
	if feed == nil {
		return err
	}
	defer feed.conn.Close()
	handling, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	r := &run{
		Consumer: c, ctx: handling, queues: consuming.NewQueues(c.config.Process.Concurrency),
		hand: newHand(2 * c.config.Process.Concurrency),
	}
	stopBeating := consuming.Every(feed.ackWait/3, r.hand.beat)
	r.receive(ctx, feed)
	grace := time.AfterFunc(c.config.Process.Grace, abandon)
	r.queues.Stop()
	grace.Stop()
	stopBeating()
	r.hand.giveBack()
	if err := feed.conn.FlushTimeout(flushTimeout); err != nil {
		c.log.Warn("some acknowledgements may not have arrived; those messages come again", "error", err)
	}
	return nil
}
