// Package consumer handles the messages of a stream of NATS JetStream.
package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/destinations/natsjs"
)

// Defaults of Config.
const (
	DefaultConcurrency = 16
	DefaultGrace       = 30 * time.Second
	DefaultAckWait     = 30 * time.Second
)

// Config says what to consume, and what to do with it.
type Config struct {
	// Broker is how to reach the server; natsjs.ParseURL makes it. Its Stream is the one to read.
	// A message's topic is its subject without SubjectPrefix. Create makes the stream and the
	// durable consumer where they are missing, for demonstrations.
	Broker natsjs.Config
	// Durable is the name of the stream's durable pull consumer. Programs that run with the same
	// name share the messages.
	Durable string
	// Subjects are what Create gives to the durable consumer, and to a stream that it makes. A
	// durable consumer that is there has its own.
	Subjects []string
	// AckWait is what Create gives to the durable consumer: how long after a consumer was killed
	// its messages come again. Default 30 s. A handler may take longer.
	AckWait time.Duration
	// Ordered keeps the order of a key when a message fails: it is tried again here, and the later
	// ones of its key wait behind it. Otherwise the stream delivers it again, after them.
	Ordered bool
	// Concurrency is how many messages are handled at once; as many wait. Default 16.
	Concurrency int
	// Grace is how long Run waits, when it is to end, for what is being handled. Default 30 s.
	Grace time.Duration
	// Process is what is done with the messages.
	Process consume.Config
}

// Consumer handles the messages of a stream.
type Consumer struct {
	config    Config
	options   nats.Options
	processor *consume.Processor
	log       *slog.Logger
}

// New checks the configuration. The server need not be there.
func New(config Config) (*Consumer, error) {
	c, err := newConsumer(config)
	if err != nil {
		return nil, fmt.Errorf("natsjs consumer: %w", err)
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
	log := config.Process.Logger.With("stream", config.Broker.Stream, "consumer", config.Durable)
	return &Consumer{config, options, processor, log}, nil
}

// withDefaults fills in what is zero and refuses what cannot work.
func (c Config) withDefaults() (Config, error) {
	switch {
	case c.Broker.Stream == "":
		return c, errors.New("no Stream is named: the one to read")
	case c.Durable == "":
		return c, errors.New("no Durable is named: the stream's durable consumer")
	case strings.ContainsAny(c.Durable, " \t\r\n.*>/\\"):
		return c, fmt.Errorf("%q cannot be the name of a durable consumer: no spaces, dots, slashes, * or >", c.Durable)
	case c.Concurrency < 0 || c.Grace < 0 || c.AckWait < 0:
		return c, errors.New("a Concurrency, Grace or AckWait below zero")
	}
	if c.Concurrency == 0 {
		c.Concurrency = DefaultConcurrency
	}
	if c.Grace == 0 {
		c.Grace = DefaultGrace
	}
	if c.AckWait == 0 {
		c.AckWait = DefaultAckWait
	}
	return c, nil
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
		Consumer: c, ctx: handling, queues: consume.NewQueues(c.config.Concurrency),
		hand: newHand(2 * c.config.Concurrency),
	}
	beating := r.hand.beat(feed.ackWait / 3)
	r.receive(ctx, feed)
	grace := time.AfterFunc(c.config.Grace, abandon)
	r.queues.Stop()
	grace.Stop()
	beating.stop()
	r.hand.giveBack()
	if err := feed.conn.FlushTimeout(flushTimeout); err != nil {
		c.log.Warn("some acknowledgements may not have arrived; those messages come again", "error", err)
	}
	return nil
}
