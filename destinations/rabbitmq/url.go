package rabbitmq

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/packfinderz/outbox/destinations/wire"
)

// ParseURL reads a destination such as amqp://user:password@host:5672/vhost?exchange=events. amqps
// is AMQP over TLS.
func ParseURL(raw string) (Config, error) {
	config, err := parseURL(raw)
	if err != nil {
		return Config{}, fmt.Errorf("RabbitMQ URL: %w", err)
	}
	return config, nil
}

// These do not repeat any of the URL: a password that is not escaped may be anywhere in it.
var (
	errURL   = errors.New("it must look like amqp://user:password@host:5672/vhost?option=value, with special characters written as %XX")
	errVhost = errors.New("what follows the host must be one vhost, with a slash in its name written as %2F")
)

func parseURL(raw string) (Config, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "amqp" && u.Scheme != "amqps" || u.Hostname() == "" || u.Fragment != "" ||
		u.User == nil && strings.Contains(raw, "@") {
		return Config{}, errURL
	}
	secure := u.Scheme == "amqps"
	port := u.Port()
	switch {
	case port == "" && secure:
		port = "5671"
	case port == "":
		port = "5672"
	}
	config := Config{Address: net.JoinHostPort(u.Hostname(), port), Username: u.User.Username()}
	config.Password, _ = u.User.Password()
	vhost := strings.TrimPrefix(u.EscapedPath(), "/")
	if config.Vhost, err = url.PathUnescape(vhost); err != nil || strings.Contains(vhost, "/") {
		return Config{}, errVhost
	}
	return config, config.options(u.RawQuery, secure)
}

func (c *Config) options(query string, secure bool) error {
	o := wire.ParseOptions(query)
	c.TLS = o.TLS(secure)
	if secret := o.Secret("password-file"); secret != "" {
		c.Password = secret
	}
	c.Exchange = o.String("exchange", "")
	c.RoutingKey = o.String("routing-key", DefaultRoutingKey)
	c.Create = o.Bool("create")
	c.MaxSize = o.Int("max-size", DefaultMaxSize)
	c.Format = o.Format()
	if err := o.Err(); err != nil {
		return err
	}
	return c.check()
}
