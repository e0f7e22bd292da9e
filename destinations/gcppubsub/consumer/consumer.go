// Package consumer consumes events from Google Cloud Pub/Sub.
//
// Receiving, and extending the deadlines of what was received, is the client's. What is handled at
// once, what waits after a failure and what a stop finishes is decided here.
package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/destinations/gcppubsub"
	"github.com/packfinderz/outbox/destinations/gcppubsub/internal/resource"
)

// Defaults of Config.
const (
	DefaultConcurrency = 16
	DefaultAckDeadline = 30 * time.Second
	DefaultGrace       = 30 * time.Second
)

// The service's limits of Config.AckDeadline.
const (
	LeastAckDeadline = 10 * time.Second
	MostAckDeadline  = 10 * time.Minute
)

// Config says what to consume, and what to do with it.
type Config struct {
	// Broker is how to reach the service; gcppubsub.ParseURL makes it. Unordered does without the
	// order of keys here, too. Create makes the topic and the subscription if they are not there,
	// for demos.
	Broker gcppubsub.Config
	// Subscription is the name of the subscription, short or with its project.
	Subscription string
	// Topic is the topic of the subscription. It is needed for Create. Otherwise it is what the
	// service tells; messages have no topic if these credentials may not ask.
	Topic string
	// ExactlyOnce has Create make a subscription with the service's exactly-once delivery. An
	// inbox is needed all the same: the relay may publish an event twice.
	ExactlyOnce bool
	// Concurrency is how many messages are handled at once; as many may wait. Default 16.
	Concurrency int
	// AckDeadline is how long after the death of this process a message that it had comes again,
	// between 10 s and 10 min. It does not limit handlers: while they run it is extended. Default
	// 30 s.
	AckDeadline time.Duration
	// Grace bounds how long a consumer that is stopped waits for what is being handled. Default
	// 30 s.
	Grace time.Duration
	// Process has the handlers, the dead letters and the rest.
	Process consume.Config
}

// Consumer receives the messages of a subscription and has them handled.
type Consumer struct {
	config    Config
	options   []option.ClientOption
	processor *consume.Processor
	logger    *slog.Logger
	attempts  *attempts
	holds     *holds
	running   atomic.Bool
	reception atomic.Pointer[reception] // of the run
	client    atomic.Pointer[pubsub.Client]
}

// New makes a consumer. It does not need the service to be there yet.
func New(config Config) (*Consumer, error) {
	c, err := newConsumer(config.withDefaults())
	if err != nil {
		return nil, fmt.Errorf("Pub/Sub consumer: %w", err)
	}
	return c, nil
}

func newConsumer(config Config) (*Consumer, error) {
	options, err := config.Broker.ClientOptions()
	if err != nil {
		return nil, err
	}
	if err := config.check(); err != nil {
		return nil, err
	}
	processor, err := consume.New(config.Process)
	if err != nil {
		return nil, err
	}
	config.Process = processor.Config()
	return &Consumer{
		config: config, options: options, processor: processor, logger: config.Process.Logger.With("subscription", config.Subscription),
		attempts: newAttempts(remembered), holds: newHolds(remembered),
	}, nil
}

func (c Config) withDefaults() Config {
	if c.Concurrency == 0 {
		c.Concurrency = DefaultConcurrency
	}
	if c.AckDeadline == 0 {
		c.AckDeadline = DefaultAckDeadline
	}
	if c.Grace == 0 {
		c.Grace = DefaultGrace
	}
	if c.Subscription != "" {
		c.Subscription = resource.Subscription(c.Broker.Project, c.Subscription)
	}
	return c
}

func (c Config) check() error {
	switch {
	case c.Broker.Client != nil:
		return errors.New("Config.Broker.Client is for publishers: a consumer watches over the connection of a client of its own")
	case c.Subscription == "":
		return errors.New("Config.Subscription is missing")
	case !resource.IsSubscription(c.Subscription):
		return fmt.Errorf("%q cannot be the name of a Pub/Sub subscription", c.Subscription)
	case c.Topic != "" && !resource.IsTopic(resource.Topic(c.Broker.Project, c.Topic)):
		return fmt.Errorf("%q cannot be the name of a Pub/Sub topic", c.Topic)
	case c.Broker.Create && c.Topic == "":
		return errors.New("Config.Topic is missing; a subscription is created for one")
	case c.Concurrency < 0 || c.Grace < 0:
		return errors.New("Config.Concurrency and Config.Grace must be above zero")
	case c.AckDeadline < LeastAckDeadline || c.AckDeadline > MostAckDeadline:
		return fmt.Errorf("Config.AckDeadline is %s; it must be between %s and %s", c.AckDeadline, LeastAckDeadline, MostAckDeadline)
	}
	return nil
}

// Run consumes until ctx ends. Then it takes no more, finishes what is being handled,
// acknowledges it and returns nil. While the service is away it waits for it.
func (c *Consumer) Run(ctx context.Context) error {
	if c.running.Swap(true) {
		return errors.New("Pub/Sub consumer: it runs already")
	}
	defer c.running.Store(false)
	reception := &reception{logger: c.logger, stop: ctx}
	c.reception.Store(reception)
	watched := option.WithGRPCDialOption(grpc.WithChainStreamInterceptor(reception.watch))
	client, err := pubsub.NewClient(context.Background(), c.config.Broker.Project, append(slices.Clip(c.options), watched)...)
	if err != nil {
		return fmt.Errorf("Pub/Sub consumer: set up the client: %w", err)
	}
	defer func() { _ = client.Close() }() // it may be closed already
	c.client.Store(client)
	defer c.client.Store(nil)
	reconnect := outbox.RetryPolicy{Base: 250 * time.Millisecond, Max: 10 * time.Second}
	for failures := 1; ctx.Err() == nil; failures++ {
		opened := reception.opened.Load()
		err := c.consume(ctx, client)
		if err == nil {
			break
		}
		reception.failed(err)
		if reception.opened.Load() != opened {
			failures = 1
		}
		pause(ctx, reconnect.Delay(failures))
	}
	return nil
}

// Check is nil while the consumer receives. Otherwise it says why it does not: the service is away, or the subscription is not
// there, or it does not run. It asks nobody.
func (c *Consumer) Check() error {
	if !c.running.Load() {
		return errors.New("the consumer does not run")
	}
	if r := c.reception.Load(); r != nil {
		return r.check()
	}
	return errNotYet
}

// Ping is Check, and asks the service for the subscription: one that is deleted while the consumer runs is noticed at once, and
// not only when the service ends the stream of messages. That it is missing is logged once. To consume does not include the
// permission to ask; without it Ping is Check.
func (c *Consumer) Ping(ctx context.Context) error {
	if err := c.Check(); err != nil {
		return err
	}
	client := c.client.Load()
	if client == nil {
		return errNotYet
	}
	_, err := c.ask(ctx, client)
	switch status.Code(err) {
	case codes.OK, codes.PermissionDenied:
		return nil
	case codes.NotFound:
		c.reception.Load().tell(err)
	}
	return fmt.Errorf("ask for %s: %w", c.config.Subscription, err)
}

// pause waits, unless ctx ends before.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
