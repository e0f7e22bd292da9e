// Package rabbitmq publishes events to RabbitMQ, with publisher confirms.
package rabbitmq

import (
	"crypto/tls"
	"errors"
	"strings"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/wire"
)

// DefaultMaxSize is RabbitMQ's own limit of a message until version 3.13; later ones have 16 MiB.
const DefaultMaxSize = 128 << 20

// DefaultRoutingKey routes by topic.
const DefaultRoutingKey = "{topic}"

// Config says where RabbitMQ is and how events are published there.
type Config struct {
	// Address is the server's host:port.
	Address string
	// Username and Password are the credentials; guest and guest when the username is empty.
	Username, Password string
	// Vhost is the virtual host; "/" when empty.
	Vhost string
	// TLS is set for connections over TLS.
	TLS *tls.Config

	// Exchange is where events are published. Empty is the default exchange, where the routing key
	// is the name of a queue.
	Exchange string
	// RoutingKey is the routing key, in which {topic}, {type} and {key} stand for the event's own;
	// DefaultRoutingKey when empty.
	RoutingKey string
	// Create has what is missing declared: the exchange, durable and of type topic, or on the
	// default exchange a durable queue per routing key.
	Create bool
	// MaxSize is the limit of a payload in bytes; DefaultMaxSize when zero. When the server's is
	// lower, that one holds.
	MaxSize int
	// Format is how an event's fields are written.
	Format wire.Format
}

func (c *Config) check() error {
	if c.Username == "" {
		c.Username, c.Password = "guest", "guest"
	}
	if c.Vhost == "" {
		c.Vhost = "/"
	}
	if c.RoutingKey == "" {
		c.RoutingKey = DefaultRoutingKey
	}
	if c.MaxSize == 0 {
		c.MaxSize = DefaultMaxSize
	}
	switch {
	case c.Address == "":
		return errors.New("rabbitmq: no address")
	case c.MaxSize < 0:
		return errors.New("rabbitmq: MaxSize is negative")
	case len(c.Exchange) > maxShort:
		return errors.New("rabbitmq: the exchange's name is longer than 255 bytes")
	case strings.ContainsAny(c.routingKey(&outbox.Message{}), "{}"):
		return errors.New("rabbitmq: the routing key has a placeholder other than {topic}, {type} and {key}")
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
