package consumer

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/destinations/redis"
)

// DefaultMinIdle is the default of Config.MinIdle.
const DefaultMinIdle = 30 * time.Second

// minMinIdle leaves time for signs of life, which are sent every fourth of MinIdle.
const minMinIdle = time.Second

// Config configures a consumer.
type Config struct {
	// Broker says how to reach Redis; redis.ParseURL makes it. Its Create creates the stream and the group if they
	// are missing.
	Broker redis.Config
	// Topic is the topic to read: the stream of that name, with the broker's Prefix before it.
	Topic string
	// Group is the consumer group. Its members share the entries. A new group begins with the oldest entries.
	Group string
	// Name is this consumer's name in its group. Running consumers must have different names. A consumer that comes
	// back under its old name continues with its entries at once, and so keeps the order. Default: a new name, made
	// of the host's and a random part.
	Name string
	// MinIdle is how long after the death of a consumer its entries go to another. Default 30 s. A handler may take
	// longer: its entry is kept alive.
	MinIdle time.Duration
	// Process configures how entries are handled.
	Process consume.Config
}

func (c Config) withDefaults() Config {
	c.MinIdle = cmp.Or(c.MinIdle, DefaultMinIdle)
	return c
}

func (c Config) validate() error {
	switch {
	case c.Topic == "":
		return errors.New("Config.Topic is missing")
	case c.Group == "":
		return errors.New("Config.Group is missing")
	case c.MinIdle < minMinIdle || c.MinIdle > returnedIdle:
		return fmt.Errorf("Config.MinIdle is %s; it must be between %s and %s", c.MinIdle, minMinIdle, returnedIdle)
	}
	return nil
}
