package rabbitmq

import (
	"cmp"
	"crypto/tls"
	"errors"
	"strings"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/wire"
)

// Defaults of Config.
const (
	// DefaultMaxSize is RabbitMQ's own limit of a message until version 3.13; later ones have 16 MiB.
	DefaultMaxSize = 128 << 20
	// DefaultRoutingKey routes by topic.
	DefaultRoutingKey = "{topic}"
)

const (
	defaultPort    = "5672"
	defaultTLSPort = "5671"
)

// Config configures a publisher.
type Config struct {
	// Addresses are the servers of one cluster, as host:port. At least one; the first that answers is used.
	Addresses []string
	// Username and Password are the credentials; guest and guest if the username is empty.
	Username, Password string
	// TLS is set to connect over TLS.
	TLS *tls.Config
	// Vhost is the virtual host. Default "/".
	Vhost string

	// Exchange is where events are published. Empty is the default exchange, which routes by the name of a queue.
	Exchange string
	// RoutingKey is the routing key, in which {topic}, {type} and {key} stand for the event's own.
	// Default DefaultRoutingKey.
	RoutingKey string
	// Create declares what is missing: the exchange, durable and of type topic, or on the default
	// exchange a durable queue per routing key. Without it, events for what is missing wait.
	Create bool
	// MaxSize limits a payload, in bytes. Default DefaultMaxSize. A lower limit of the server wins.
	MaxSize int
	// Format is the format of an event's fields.
	Format wire.Format
}

func (c Config) withDefaults() Config {
	if c.Username == "" {
		c.Username, c.Password = "guest", "guest"
	}
	c.Vhost = cmp.Or(c.Vhost, "/")
	c.RoutingKey = cmp.Or(c.RoutingKey, DefaultRoutingKey)
	c.MaxSize = cmp.Or(c.MaxSize, DefaultMaxSize)
	return c
}

func (c Config) validate() error {
	switch {
	case c.MaxSize < 0:
		return errors.New("MaxSize must not be negative")
	case len(c.Exchange) > maxShort:
		return errors.New("the exchange's name is longer than 255 bytes")
	case strings.ContainsAny(c.routingKey(&outbox.Message{}), "{}"):
		return errors.New("the routing key has a placeholder other than {topic}, {type} and {key}")
	}
	return nil
}

// routingKey is that of a message.
func (c *Config) routingKey(message *outbox.Message) string {
	return strings.NewReplacer("{topic}", message.Topic, "{type}", message.Type, "{key}", message.Key).Replace(c.RoutingKey)
}

// routesByTopic reports whether the topic alone makes the routing key.
func (c *Config) routesByTopic() bool {
	return !strings.Contains(c.RoutingKey, "{type}") && !strings.Contains(c.RoutingKey, "{key}")
}
