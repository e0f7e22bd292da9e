// Package consumer consumes events from Google Cloud Pub/Sub.
//
// The client receives messages and extends their deadlines. This package decides what is handled at once, what waits
// after a failure, and what a stop still finishes.
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
	"github.com/packfinderz/outbox/internal/consuming"
)

// Consumer receives the messages of a subscription and has them handled.
type Consumer struct {
	config    Config
	options   []option.ClientOption
	processor *consume.Processor
	logger    *slog.Logger
	failures  *consuming.Recent[string] // of messages, where the service does not count deliveries
	holds     *holds
	running   atomic.Bool
	reception atomic.Pointer[reception] // of the run
	client    atomic.Pointer[pubsub.Client]
}

// New returns a consumer. It does not connect.
func New(config Config) (*Consumer, error) {
	config = config.withDefaults()
	options, brokerErr := config.Broker.ClientOptions()
	processor, processErr := consume.New(config.Process)
	for _, err := range []error{brokerErr, config.validate(), processErr} {
		if err != nil {
			return nil, fmt.Errorf("Pub/Sub consumer: %w", err)
		}
	}
	config.Process = processor.Config()
	return &Consumer{
		config: config, options: options, processor: processor, logger: config.Process.Logger.With("subscription", config.Subscription),
		failures: consuming.NewRecent[string](remembered / 2), holds: newHolds(remembered),
	}, nil
}

// Run handles messages until ctx ends. Then it takes no more, waits for running handlers, acknowledges what they
// handled and returns nil. It waits while the service is unavailable. After the grace it cancels the handlers' context.
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
		consuming.Pause(ctx, reconnect.Delay(failures))
	}
	return nil
}

// Check returns nil while the consumer receives, and otherwise why it does not: the service is unavailable, the
// subscription is missing, or Run is not running. It asks nobody.
func (c *Consumer) Check() error {
	if !c.running.Load() {
		return errors.New("the consumer does not run")
	}
	if r := c.reception.Load(); r != nil {
		return r.check()
	}
	return errNotYet
}

// Ping is Check, and asks the service for the subscription: a deleted one is noticed at once, and not only when the
// service ends the stream of messages. Credentials that may consume but not ask make Ping the same as Check.
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
