package handlers

import (
	"cmp"
	"errors"
	"log/slog"
	"time"
)

// Defaults of Config.
const (
	DefaultTimeout     = 30 * time.Second
	DefaultConcurrency = 16
	DefaultRemember    = 10_000
)

// Config configures a publisher. The zero value is ready to use.
type Config struct {
	// RetryUnknown retries an event whose type has no handler, for instance while a new version is
	// rolled out. By default it is dead at once. In a consumer, consume.Config.Unknown decides instead.
	RetryUnknown bool
	// Timeout limits one call of a handler: its context ends, and the attempt has failed. Default 30 s.
	Timeout time.Duration
	// Concurrency is how many events are handled at once. Default 16.
	Concurrency int
	// Remember limits how many unfinished events we track completed handlers for. Default 10,000.
	Remember int
	// Logger logs the stacks of panics. Default slog.Default().
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.Concurrency = cmp.Or(c.Concurrency, DefaultConcurrency)
	c.Remember = cmp.Or(c.Remember, DefaultRemember)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

func (c Config) validate() error {
	if c.Timeout < 0 || c.Concurrency < 0 || c.Remember < 0 {
		return errors.New("handlers: Timeout, Concurrency and Remember must not be negative")
	}
	return nil
}
