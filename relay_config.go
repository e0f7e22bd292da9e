package outbox

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"
)

// RelayConfig configures a relay. Store and Publisher are required; everything else has a default.
type RelayConfig struct {
	// Store is where the relay claims events.
	Store Store
	// Publisher is where the relay publishes them.
	Publisher Publisher

	// Registry checks events and sets their topics; nil publishes every event as it is.
	Registry Registry
	// DefaultTopic is the topic of events that have none of their own and none from the registry.
	DefaultTopic string
	// Topics are further topics to ping at the start and while nothing is published. DefaultTopic and the
	// registry's topics are always pinged.
	Topics []string

	// BatchSize is the maximum number of events in a claim. Default 1,000; at most 100,000.
	BatchSize int
	// Concurrency is how many batches are published at once. Default 2.
	Concurrency int
	// Poll is the longest time between two claims of an idle relay. Default 1 s; at most a third of the store's
	// lease.
	Poll time.Duration
	// Listen lets the store wake the relay, if it is a Listener.
	Listen bool
	// PublishTimeout bounds one call of the publisher. Default 30 s. Messages not acknowledged by then are tried
	// again; whether that counts as an attempt depends on a ping and on the other messages.
	PublishTimeout time.Duration
	// Grace is how long the relay may take to stop: to publish and settle what it has claimed, and to release the
	// rest. Default 30 s.
	Grace time.Duration
	// Retry is the delay between attempts.
	Retry RetryPolicy

	// SweepEvery is how often the relay sweeps events that have used up their attempts. Default 10 s.
	SweepEvery time.Duration
	// Purge deletes old delivered events every PurgeEvery, if its Retention is set.
	Purge Purge
	// PurgeEvery is how often the relay purges. Default 1 min.
	PurgeEvery time.Duration

	// Hooks observe the relay. Each implements at least one of ClaimHook, SettleHook, RouteHook, SweepHook and
	// StoreErrorHook.
	Hooks []any
	// Logger logs starts and stops, dead events, failed attempts (a few per second at most) and, at debug level,
	// delivered events. Default slog.Default().
	Logger *slog.Logger
	// AttemptLevel, if set, makes the relay log one line per attempt at this level, whatever its outcome.
	AttemptLevel slog.Leveler
}

// minPollsPerLease keeps a lease from running out between two polls.
const minPollsPerLease = 3

// MaxBatchSize is the largest RelayConfig.BatchSize: a batch is held in memory.
const MaxBatchSize = 100_000

// withDefaults fills in defaults and rejects what cannot work.
func (c RelayConfig) withDefaults() (RelayConfig, error) {
	if isNil(c.Store) {
		return c, errors.New("outbox: RelayConfig.Store is missing")
	}
	if isNil(c.Publisher) {
		return c, errors.New("outbox: RelayConfig.Publisher is missing")
	}
	if c.Registry != nil && len(c.Registry) == 0 {
		return c, errors.New("outbox: RelayConfig.Registry has no routes: every event would be dead; leave it nil to publish events as they are")
	}
	for i, hook := range c.Hooks {
		if isNil(hook) || !isHook(hook) {
			return c, fmt.Errorf("outbox: RelayConfig.Hooks[%d], a %T, has no method of a hook", i, hook)
		}
	}
	c.BatchSize = cmp.Or(c.BatchSize, 1000)
	c.Concurrency = cmp.Or(c.Concurrency, 2)
	c.Poll = cmp.Or(c.Poll, time.Second)
	c.PublishTimeout = cmp.Or(c.PublishTimeout, 30*time.Second)
	c.Grace = cmp.Or(c.Grace, 30*time.Second)
	c.SweepEvery = cmp.Or(c.SweepEvery, 10*time.Second)
	c.PurgeEvery = cmp.Or(c.PurgeEvery, time.Minute)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	var err error
	if c.Retry, err = c.Retry.WithDefaults(); err != nil {
		return c, err
	}
	for name, value := range map[string]int64{
		"BatchSize": int64(c.BatchSize), "Concurrency": int64(c.Concurrency), "Poll": int64(c.Poll),
		"PublishTimeout": int64(c.PublishTimeout), "Grace": int64(c.Grace),
		"SweepEvery": int64(c.SweepEvery), "PurgeEvery": int64(c.PurgeEvery),
	} {
		if value < 0 {
			return c, fmt.Errorf("outbox: RelayConfig.%s is negative", name)
		}
	}
	if c.BatchSize > MaxBatchSize {
		return c, fmt.Errorf("outbox: RelayConfig.BatchSize is %d; it must be at most %d", c.BatchSize, MaxBatchSize)
	}
	if lease := c.Store.Traits().Lease; c.Poll > lease/minPollsPerLease {
		return c, fmt.Errorf("outbox: the poll interval, %s, must be at most a third of the lease, %s", c.Poll, lease)
	}
	return c, nil
}

// isNil reports whether a value is nil or a nil pointer.
func isNil(value any) bool {
	v := reflect.ValueOf(value)
	return value == nil || v.Kind() == reflect.Pointer && v.IsNil()
}
