package modkit

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/handlers"
)

// Publish hands one message to whoever is downstream, in whatever way the module likes, and
// returns nil once it is there. An error is a failed attempt; wrap it with outbox.Terminal to
// have no other, or with outbox.Unavailable to have none counted while downstream is away. It
// may see a message twice. The dispatcher settles the message: Publish must not ack it, and
// nobody but Publish looks into its payload.
type Publish func(ctx context.Context, message ClaimedMessage) error

// DispatcherConfig adjusts a dispatcher.
type DispatcherConfig struct {
	// Store says which messages it claims, for how long, and when they are tried again.
	Store StoreConfig
	// PollInterval is the longest time between two looks at an idle table. Default 1 s; at
	// most a third of the lease.
	PollInterval time.Duration
	// BatchSize is how many messages one claim takes. Default 100.
	BatchSize int
	// Concurrency is how many messages are published at once. Default 16.
	Concurrency int
	// PublishTimeout bounds one call of Publish. Default 30 s.
	PublishTimeout time.Duration
	// Hooks are observers; see outbox.Config.
	Hooks []any
	// Logger gets a line for every failed attempt, and for every message that is dead or was
	// lost to another worker. Default slog.Default().
	Logger *slog.Logger
}

// NewDispatcher makes a relay that hands every due message to a function of the module's. Run
// it with the context that is cancelled at the module's shutdown: it then claims no more,
// finishes what is being published, and gives back the rest.
func NewDispatcher(pool *pgxpool.Pool, config DispatcherConfig, publish Publish) (*outbox.Relay, error) {
	if publish == nil {
		return nil, errors.New("outbox: the dispatcher has no function to publish with")
	}
	store, err := config.Store.open(pool)
	if err != nil {
		return nil, err
	}
	// ModKit's messages have no type, so that one handler is given all of them.
	set, err := handlers.New(handlers.Options{
		Timeout: config.PublishTimeout, Concurrency: config.Concurrency, Logger: config.Logger,
	})
	if err != nil {
		return nil, err
	}
	err = set.Otherwise("publish", func(ctx context.Context, message outbox.Message) error {
		return publish(ctx, ClaimedMessage{Message: message})
	})
	if err != nil {
		return nil, err
	}
	if config.BatchSize == 0 {
		config.BatchSize = 100
	}
	return outbox.NewRelay(outbox.Config{
		Store: store, Publisher: set, BatchSize: config.BatchSize, Poll: config.PollInterval, Retry: config.Store.Retry,
		Hooks: config.Hooks, Logger: config.Logger, PublishTimeout: batchTime(config.PublishTimeout),
	})
}

// batchTime leaves a batch twice the time of a call. A call is begun only while it has its
// full time; those that are left are given back, uncounted.
func batchTime(call time.Duration) time.Duration {
	if call == 0 {
		call = handlers.DefaultTimeout
	}
	return 2 * call
}
