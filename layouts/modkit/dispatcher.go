package modkit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/handlers"
)

// Handler is the contract's publish: it hands one message to whoever is downstream, in whatever
// way the module likes, and returns nil once it is there. An error is a failed attempt; wrap it
// with outbox.Terminal to have no other, or with outbox.Unavailable to have none counted while
// downstream is away: the messages of its topic wait then, and no others. It may see a message twice. The dispatcher settles the message: a handler
// must not ack it, and nobody but the handler looks into its payload.
type Handler func(ctx context.Context, message ClaimedMessage) error

// DispatcherConfig says what a dispatcher does. It needs a handler; all times follow from the
// lease unless they are set.
type DispatcherConfig struct {
	// Handlers are by topic.
	Handlers map[string]Handler
	// Otherwise has the messages of all other topics. Without it they are left alone.
	Otherwise Handler
	// Claim is what one claim takes, and its terms. Default of BatchSize: four for each handler at
	// work, at most 100.
	Claim ClaimCfg
	// Concurrency is how many handlers are at work at once. Each may use one connection of the
	// module's, and the dispatcher needs two: one to claim, one for leases and outcomes. Default:
	// 16, or what the connections allow; more than that is refused.
	Concurrency int
	// OffPool says that the handlers use no connection of the module's, so that Concurrency is not
	// bounded by them.
	OffPool bool
	// PollInterval is the longest time between two looks at an idle table. Default: a third of the
	// lease, at most 1 s. More than a third is refused.
	PollInterval time.Duration
	// PublishTimeout bounds one call of a handler. Default: the lease. A longer one is fine: leases
	// are renewed while a handler works.
	PublishTimeout time.Duration
	// Hooks are observers; see outbox.RelayConfig.
	Hooks []any
	// Logger gets a line for every failed attempt, and for every message that is dead or was
	// lost to another worker. Default slog.Default().
	Logger *slog.Logger
}

const (
	// ownConnections are what a dispatcher needs besides its handlers.
	ownConnections = 2
	// batchShare is how many messages a claim takes for each handler at work.
	batchShare = 4
	maxBatch   = 100
	maxPoll    = time.Second
	// pollsPerLease is the contract's: looks that are seldom let leases run out unseen.
	pollsPerLease = 3
)

// NewDispatcher makes a relay that hands every due message of the module's to the handler of its
// topic. Run it with the context that is cancelled at the module's shutdown: it then claims no
// more, finishes what is being handled, and gives back the rest. A dispatcher that could not keep
// its leases, because its handlers may take all connections, is refused.
func NewDispatcher(module *Module, config DispatcherConfig) (*outbox.Relay, error) {
	if module == nil {
		return nil, errors.New("outbox: the dispatcher has no module")
	}
	if err := config.checkNumbers(); err != nil {
		return nil, err
	}
	if err := config.checkHandlers(module); err != nil {
		return nil, err
	}
	if err := config.fitConnections(module.conns()); err != nil {
		return nil, err
	}
	own := module
	if config.Otherwise == nil {
		own = module.only(slices.Sorted(maps.Keys(config.Handlers)))
	}
	store, err := own.store(config.Claim)
	if err != nil {
		return nil, err
	}
	lease := store.Traits().Lease
	config.PollInterval = cmp.Or(config.PollInterval, min(maxPoll, lease/pollsPerLease))
	config.PublishTimeout = cmp.Or(config.PublishTimeout, lease)
	config.Claim.BatchSize = cmp.Or(config.Claim.BatchSize, min(maxBatch, batchShare*config.Concurrency))
	publisher, err := config.publisher()
	if err != nil {
		return nil, err
	}
	return outbox.NewRelay(outbox.RelayConfig{
		Store: store, Publisher: publisher, BatchSize: config.Claim.BatchSize, Poll: config.PollInterval, Retry: module.retry,
		Hooks: config.Hooks, Logger: config.Logger,
		// A call is begun only while it has its full time; those that are left are given back, uncounted.
		PublishTimeout: 2 * config.PublishTimeout,
	})
}

// maxTimeout is as long as the longest lease.
const maxTimeout = 24 * time.Hour

// checkNumbers refuses what the parts of a dispatcher would refuse under other names.
func (c *DispatcherConfig) checkNumbers() error {
	switch {
	case c.Claim.BatchSize < 0 || c.Claim.BatchSize > outbox.MaxBatchSize:
		return fmt.Errorf("outbox: DispatcherConfig.Claim.BatchSize is %d; a claim takes between 1 and %d messages", c.Claim.BatchSize, outbox.MaxBatchSize)
	case c.Concurrency < 0:
		return fmt.Errorf("outbox: DispatcherConfig.Concurrency is %d; it must be at least 1", c.Concurrency)
	case c.PublishTimeout < 0 || c.PublishTimeout > maxTimeout:
		return fmt.Errorf("outbox: DispatcherConfig.PublishTimeout is %s; it must be at most %s", c.PublishTimeout, maxTimeout)
	case c.PollInterval < 0:
		return fmt.Errorf("outbox: DispatcherConfig.PollInterval is %s; it must be positive", c.PollInterval)
	}
	return nil
}

// checkHandlers refuses handlers that are missing, or would never be called.
func (c *DispatcherConfig) checkHandlers(module *Module) error {
	if len(c.Handlers) == 0 && c.Otherwise == nil {
		return errors.New("outbox: the dispatcher has no handler: set DispatcherConfig.Handlers or Otherwise")
	}
	for topic, handle := range c.Handlers {
		switch topics := module.config.Topics; {
		case handle == nil:
			return fmt.Errorf("outbox: the handler of topic %q is nil", topic)
		case len(topics) > 0 && !slices.Contains(topics, topic):
			return fmt.Errorf("outbox: topic %q has a handler, but the module has only the topics %q", topic, topics)
		}
	}
	return nil
}

// fitConnections holds the concurrency to the number of connections there are; zero for any number.
func (c *DispatcherConfig) fitConnections(conns int) error {
	room := handlers.DefaultConcurrency
	if !c.OffPool && conns > 0 {
		room = min(room, conns-ownConnections)
		if asked := max(1, c.Concurrency); asked > conns-ownConnections {
			return fmt.Errorf("outbox: %d handlers at once with a connection each, and %d connections for the dispatcher's claims and leases, are %d; "+
				"the module has %d: give it more, lower Concurrency, or set OffPool if the handlers use none of them",
				asked, ownConnections, asked+ownConnections, conns)
		}
	}
	c.Concurrency = cmp.Or(c.Concurrency, room)
	return nil
}
