package rabbitmq

import (
	"net/url"
	"strings"

	"github.com/packfinderz/outbox/destinations/wire"
)

// ParseURL reads a destination such as amqp://user:password@host:5672/vhost?exchange=events. amqps is
// AMQP over TLS. Several hosts, separated by commas, are servers of one cluster. No error shows a secret.
func ParseURL(raw string) (Config, error) {
	u, err := wire.Form{ //nolint:gosec // the form of the URL, not a secret
		Name: "RabbitMQ", Like: "amqp://user:password@host:5672/vhost?exchange=events",
		Ports: map[string]string{"amqp": defaultPort, "amqps": defaultTLSPort}, Path: "one vhost, with a slash in its name written as %2F,",
	}.Parse(raw)
	if err != nil {
		return Config{}, err
	}
	vhost, err := url.PathUnescape(u.Path)
	if err != nil || strings.Contains(u.Path, "/") {
		return Config{}, u.BadPath()
	}
	o := u.Options
	config := Config{
		Addresses: u.Addresses, Username: u.User.Username(), Password: u.Password(), TLS: o.TLS(u.Scheme == "amqps"), Vhost: vhost,
		Exchange: o.String("exchange", ""), RoutingKey: o.String("routing-key", DefaultRoutingKey),
		Create: o.Bool("create"), MaxSize: o.Int("max-size", DefaultMaxSize), Format: o.Format(),
	}.withDefaults()
	return config, u.Err(config.validate())
}
