// Package consumer handles the entries of a Redis Stream, as a member of a consumer group.
package consumer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/destinations/redis"
)

// Defaults of Config.
const (
	DefaultConcurrency = 16
	DefaultMinIdle     = 30 * time.Second
	DefaultGrace       = 30 * time.Second
)

// Config says which stream to consume and what to do with its entries.
type Config struct {
	// Broker is how to reach Redis; redis.ParseURL makes it. Create makes a missing stream and
	// group.
	Broker redis.Config
	// Topic is what to consume: the stream of that name, with the broker's Prefix before it.
	Topic string
	// Group is the consumer group. Each group has every entry, and each of its consumers some.
	Group string
	// Name is this consumer's in its group. No two that run may have the same. One that comes
	// back under its old name goes on with what it had at once, and so keeps the order. Default: a
	// new name, of the host's and a random part.
	Name string
	// Concurrency is how many entries are handled at once; as many more wait. Default 16.
	Concurrency int
	// MinIdle is after how long without a sign of life another consumer takes over what one has
	// not acknowledged. Handlers may take longer: their entries are kept alive. Default 30 s.
	MinIdle time.Duration
	// Grace is how long handlers may go on after the end of Run's context. Default 30 s.
	Grace time.Duration
	// Process says how entries are handled, and when they are given up.
	Process consume.Config
}

// Consumer handles the entries of a stream as a member of a consumer group.
type Consumer struct {
	config    Config
	options   *goredis.UniversalOptions
	processor *consume.Processor
}

// New checks the configuration. It needs no Redis yet.
func New(config Config) (*Consumer, error) {
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
	return &Consumer{config, options, processor}, nil
}

// check fills in what is zero and refuses what cannot work.
func (c *Config) check() error {
	switch {
	case c.Topic == "" || c.Group == "":
		return errors.New("redis: Topic and Group must be set")
	case c.Concurrency < 0 || c.MinIdle < 0 || c.Grace < 0:
		return errors.New("redis: Concurrency, MinIdle and Grace cannot be negative")
	case c.MinIdle > 0 && c.MinIdle < minMinIdle || c.MinIdle > returnedIdle:
		return fmt.Errorf("redis: MinIdle is %s; choose %s to %s", c.MinIdle, minMinIdle, returnedIdle)
	}
	if c.Concurrency == 0 {
		c.Concurrency = DefaultConcurrency
	}
	if c.MinIdle == 0 {
		c.MinIdle = DefaultMinIdle
	}
	if c.Grace == 0 {
		c.Grace = DefaultGrace
	}
	return nil
}

// minMinIdle leaves time for signs of life, which come at every fourth of MinIdle.
const minMinIdle = time.Second

// Run handles entries until ctx ends. It then takes no more, lets the handlers finish within the
// grace, acknowledges what they finished, gives the rest back to the group and returns nil. A
// Redis that is away is waited for.
func (c *Consumer) Run(ctx context.Context) error {
	client := goredis.NewUniversalClient(c.options)
	g := &group{
		client: client, stream: c.config.Broker.Prefix + c.config.Topic, name: c.config.Group,
		member: c.config.Name, heir: c.config.Name, minIdle: c.config.MinIdle,
	}
	passing := g.member == ""
	if passing {
		g.member, g.heir = newMember(), returned
	}
	r := newRun(c, g)
	r.read(ctx)
	r.finish()
	if passing && !r.unheard.Load() {
		g.leave(ctx) // a name that does not come back
	}
	if err := client.Close(); err != nil {
		return fmt.Errorf("redis: closing the connections: %w", err)
	}
	return nil
}

// newMember makes a name that nobody else has.
func newMember() string {
	host, err := os.Hostname()
	if err != nil {
		host = "consumer" // the rest tells it from others
	}
	return host + "-" + strings.ToLower(rand.Text()[:10])
}
