package outbox

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"
)

// RelayConfig says what a relay does. Store and Publisher are needed; everything else has a
// default.
type RelayConfig struct {
	// Store is where events are claimed.
	Store Store
	// Publisher is where they go.
	Publisher Publisher

	// Registry checks events and gives their topics; nil publishes every event as it is.
	Registry Registry
	// DefaultTopic is the topic of events that have none after the registry was asked.
	DefaultTopic string
	// Topics are topics that are asked for at the start and while nothing is published, besides
	// DefaultTopic and those of the registry.
	Topics []string

	// BatchSize is how many events one claim takes. Default 1,000; at most 100,000.
	BatchSize int
	// Concurrency is how many batches are published at once. Default 2.
	Concurrency int
	// Poll is the longest time between two looks at an idle store. Default 1 s; at most a
	// third of the store's lease.
	Poll time.Duration
	// Listen lets the store wake the relay, if it can; see Listener.
	Listen bool
	// PublishTimeout bounds one call of the publisher. Default 30 s. What has not been
	// acknowledged by then is tried again; whether that was an attempt depends on what a ping
	// and the other messages say.
	PublishTimeout time.Duration
	// Grace is how long the relay may take to end: to publish and settle what it has claimed, and to give back the rest.
	// Default 30 s.
	Grace time.Duration
	// Retry is the delay between attempts.
	Retry RetryPolicy

	// SweepEvery is how often events with used-up attempts are looked for. Default 10 s.
	SweepEvery time.Duration
	// Purge deletes old delivered events every PurgeEvery, when its Retention is set.
	Purge Purge
	// PurgeEvery is how often to purge. Default 1 min.
	PurgeEvery time.Duration

	// Hooks are observers. Each has at least one of ClaimHook, SettleHook, RouteHook, SweepHook
	// and StoreErrorHook.
	Hooks []any
	// Logger gets lifecycle steps, dead events and failed attempts, the latter a few a second at
	// most, and delivered events at debug level. Default slog.Default().
	Logger *slog.Logger
	// AttemptLevel, if set, is the level of the one line per attempt, whatever came of it.
	AttemptLevel slog.Leveler
}

// minPollsPerLease keeps a lease from running out between two looks.
const minPollsPerLease = 3

// MaxBatchSize is the most events that one claim may take: they are in memory together.
const MaxBatchSize = 100_000

// withDefaults fills in what is zero and refuses what cannot work.
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
	orDefault(&c.BatchSize, 1000)
	orDefault(&c.Concurrency, 2)
	orDefault(&c.Poll, time.Second)
	orDefault(&c.PublishTimeout, 30*time.Second)
	orDefault(&c.Grace, 30*time.Second)
	orDefault(&c.SweepEvery, 10*time.Second)
	orDefault(&c.PurgeEvery, time.Minute)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
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

// isNil reports whether a value is nil, or a nil pointer.
func isNil(value any) bool {
	if value == nil {
		return true
	}
	v := reflect.ValueOf(value)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

func orDefault[T int | time.Duration](value *T, fallback T) {
	if *value == 0 {
		*value = fallback
	}
}
