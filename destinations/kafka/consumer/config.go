package consumer

import (
	"cmp"
	"errors"
	"time"

	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/destinations/kafka"
	"github.com/packfinderz/outbox/destinations/kafka/internal/topic"
)

// DefaultSessionTimeout is the default of Config.SessionTimeout.
const DefaultSessionTimeout = 45 * time.Second

// Config configures a consumer.
type Config struct {
	// Broker says how to reach the cluster; kafka.ParseURL makes it. Its Create creates missing topics.
	Broker kafka.Config
	// Topics are the topics to read.
	Topics []string
	// Group is the consumer group. Its members share the partitions. A new group begins with the oldest records.
	Group string
	// SessionTimeout is how long after the death of a consumer its partitions go to another. Default 45 s. A
	// handler may take longer.
	SessionTimeout time.Duration
	// Process configures how records are handled. Its Grace also bounds how long a partition that moves to another
	// consumer is waited for.
	Process consume.Config
}

func (c Config) withDefaults() Config {
	c.SessionTimeout = cmp.Or(c.SessionTimeout, DefaultSessionTimeout)
	return c
}

func (c Config) validate() error {
	switch {
	case len(c.Topics) == 0:
		return errors.New("Config.Topics is missing")
	case c.Group == "":
		return errors.New("Config.Group is missing")
	case c.SessionTimeout < 0:
		return errors.New("Config.SessionTimeout must not be negative")
	}
	for _, name := range c.Topics {
		if err := topic.Check(name); err != nil {
			return err
		}
	}
	return nil
}
