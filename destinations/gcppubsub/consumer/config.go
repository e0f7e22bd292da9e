package consumer

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/destinations/gcppubsub"
	"github.com/packfinderz/outbox/destinations/gcppubsub/internal/resource"
)

const (
	// DefaultAckDeadline is the default of Config.AckDeadline.
	DefaultAckDeadline = 30 * time.Second
	// MinAckDeadline is the shortest Config.AckDeadline of the service.
	MinAckDeadline = 10 * time.Second
	// MaxAckDeadline is the longest.
	MaxAckDeadline = 10 * time.Minute
)

// Config configures a consumer.
type Config struct {
	// Broker says how to reach the service; gcppubsub.ParseURL makes it. Its Unordered also gives up the order of
	// keys here. Its Create creates the topic and the subscription if they are missing.
	Broker gcppubsub.Config
	// Topic is the topic of the subscription. Create needs it. Otherwise the consumer asks the service; if its
	// credentials may not ask, messages have no topic.
	Topic string
	// Subscription is the name of the subscription, short or with its project. Programs with the same
	// subscription share its messages.
	Subscription string
	// ExactlyOnce makes Create create a subscription with the service's exactly-once delivery. You need an inbox
	// all the same: the relay may publish an event twice.
	ExactlyOnce bool
	// AckDeadline is how long after the death of a consumer its messages come again, from 10 s to 10 min. Default
	// 30 s. A handler may take longer: the deadline is extended while it runs.
	AckDeadline time.Duration
	// Process configures how messages are handled.
	Process consume.Config
}

func (c Config) withDefaults() Config {
	c.AckDeadline = cmp.Or(c.AckDeadline, DefaultAckDeadline)
	if c.Subscription != "" {
		c.Subscription = resource.Subscription(c.Broker.Project, c.Subscription)
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.Broker.Client != nil:
		return errors.New("Config.Broker.Client is for publishers: a consumer has a client of its own and watches its connection")
	case c.Subscription == "":
		return errors.New("Config.Subscription is missing")
	case !resource.IsSubscription(c.Subscription):
		return fmt.Errorf("%q cannot be the name of a Pub/Sub subscription", c.Subscription)
	case c.Topic != "" && !resource.IsTopic(resource.Topic(c.Broker.Project, c.Topic)):
		return fmt.Errorf("%q cannot be the name of a Pub/Sub topic", c.Topic)
	case c.Broker.Create && c.Topic == "":
		return errors.New("Config.Topic is missing; create=true makes the subscription of a topic")
	case c.AckDeadline < MinAckDeadline || c.AckDeadline > MaxAckDeadline:
		return fmt.Errorf("Config.AckDeadline is %s; it must be between %s and %s", c.AckDeadline, MinAckDeadline, MaxAckDeadline)
	}
	return nil
}
