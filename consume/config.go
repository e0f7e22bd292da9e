package consume

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/packfinderz/outbox"
)

// Defaults of Config.
const (
	DefaultConcurrency   = 16
	DefaultGrace         = 30 * time.Second
	DefaultMaxDeliveries = 5
)

// Config configures a consumer of any broker.
type Config struct {
	// Handlers handles the messages. It is a *handlers.Publisher, or any other publisher: a message is handled when
	// Publish returns no error for it. Wrap a handler whose effect must happen once in an inbox.
	Handlers outbox.Publisher
	// Unknown says what to do with an event whose type has no handler, or is not in Registry. It is required,
	// unless Handlers handles all types (see Typed) and there is no Registry.
	Unknown Unknown
	// Registry, if set, checks every message before it is handled, as the relay does.
	Registry outbox.Registry
	// Concurrency is how many messages are handled at once; about as many wait. Default 16.
	Concurrency int
	// Grace is how long a stopping consumer waits for its handlers before it cancels their context. Default 30 s.
	Grace time.Duration
	// MaxDeliveries is how many failed deliveries make an event a dead letter. Default 5.
	MaxDeliveries int
	// Retry is the delay before a failed event is delivered again, if the broker can delay. Default: 1 s, doubling
	// to 5 min.
	Retry outbox.RetryPolicy
	// DeadLetters publishes dead letters, to DeadLetterTopic. Without it there are none: a failing event is
	// delivered again forever.
	DeadLetters     outbox.Publisher
	DeadLetterTopic string
	// Hooks observe every delivery; see Hook.
	Hooks []any
	// Logger logs every failed delivery. Default slog.Default().
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Concurrency = cmp.Or(c.Concurrency, DefaultConcurrency)
	c.Grace = cmp.Or(c.Grace, DefaultGrace)
	c.MaxDeliveries = cmp.Or(c.MaxDeliveries, DefaultMaxDeliveries)
	c.Retry.Base = cmp.Or(c.Retry.Base, time.Second)
	c.Retry.Max = cmp.Or(c.Retry.Max, max(5*time.Minute, c.Retry.Base))
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

func (c Config) validate() error {
	switch {
	case c.Handlers == nil:
		return errors.New("consume: Config.Handlers is missing")
	case (c.DeadLetters == nil) != (c.DeadLetterTopic == ""):
		return errors.New("consume: Config.DeadLetters and Config.DeadLetterTopic go together")
	case c.MaxDeliveries < 0:
		return fmt.Errorf("consume: Config.MaxDeliveries is %d; it must be above zero", c.MaxDeliveries)
	case c.Concurrency < 0:
		return fmt.Errorf("consume: Config.Concurrency is %d; it must be above zero", c.Concurrency)
	case c.Grace < 0:
		return fmt.Errorf("consume: Config.Grace is %s; it must be above zero", c.Grace)
	}
	return c.validateUnknown()
}
