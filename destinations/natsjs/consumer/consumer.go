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

// New returns a consumer. It does not connect.
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

// Run handles messages until ctx ends. Then it takes no more, waits for running handlers, gives the rest back to the
// stream and returns nil. It waits while the server is unavailable, and fails only if the durable consumer is missing
// or unfit at the start. After the grace it cancels the handlers' context, and waits until they return.
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
		hand: &hand{size: 2 * c.config.Process.Concurrency, freed: consuming.NewSignal(), held: make(map[uint64]*delivered)},
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
