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

// Handler is the contract's publish: it delivers one message downstream in any way it likes, and returns nil after
// that. An error is a failed attempt. Wrap it with outbox.Terminal to make the message dead at once, or with
// outbox.Unavailable if downstream is unavailable: then nothing is counted, and only the messages of this topic
// wait. A handler may see a message twice. It must not ack the message: the dispatcher settles it. Only the handler
// reads the payload.
type Handler func(ctx context.Context, message ClaimedMessage) error

// DispatcherConfig configures a dispatcher. A handler is required; times default to values derived from the lease.
type DispatcherConfig struct {
	// Handlers are the handlers by topic.
	Handlers map[string]Handler
	// Otherwise handles the messages of all other topics. If it is nil, they are not claimed.
	Otherwise Handler
	// Claim configures each claim. Default of BatchSize: four per concurrent handler, at most 100.
	Claim ClaimCfg
	// Concurrency is how many handlers run at once. Each may use one of the module's connections, and the
	// dispatcher needs two: one to claim, one for leases and outcomes. Default: 16, or fewer if there are fewer
	// connections; more than the connections allow is refused.
	Concurrency int
	// OffPool says that the handlers use none of the module's connections, so that these do not bound Concurrency.
	OffPool bool
	// PollInterval is the longest time between two claims of an idle dispatcher. Default: a third of the lease, at
	// most 1 s. More than a third is refused.
	PollInterval time.Duration
	// PublishTimeout bounds one call of a handler. Default: the lease. It may be longer: leases are renewed while a
	// handler runs.
	PublishTimeout time.Duration
	// Hooks observe the dispatcher; see outbox.RelayConfig.
	Hooks []any
	// Logger logs every failed attempt, and every message that is dead or was lost to another worker. Default
	// slog.Default().
	Logger *slog.Logger
}

const (
	// ownConnections is how many connections a dispatcher needs besides its handlers.
	ownConnections = 2
	// batchShare is how many messages a claim takes per concurrent handler.
	batchShare = 4
	maxBatch   = 100
	maxPoll    = time.Second
	// pollsPerLease is the contract's: with rarer polls, leases would run out unnoticed.
	pollsPerLease = 3
)

// NewDispatcher returns a relay that hands every due message of the module to the handler of its topic. Run it with
// a context that is cancelled at the module's shutdown: it then stops claiming, finishes what is being handled, and
// releases the rest. A dispatcher whose handlers could take all connections is refused, because it could not renew
// its leases.
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
	topics := module.config.Topics
	if config.Otherwise == nil {
		topics = slices.Sorted(maps.Keys(config.Handlers))
	}
	store, err := module.newStore(module.terms(config.Claim), topics)
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
		// A call starts only if its full time is left; the other messages are released, uncounted.
		PublishTimeout: 2 * config.PublishTimeout,
	})
}

// maxTimeout is as long as the longest lease.
const maxTimeout = 24 * time.Hour

// checkNumbers rejects values that the parts of a dispatcher would reject under other names.
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

// checkHandlers rejects handlers that are missing or would never be called.
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

// fitConnections limits the concurrency to the number of connections; zero for any number.
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
