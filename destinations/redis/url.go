package redis

import (
	"strconv"

	"github.com/packfinderz/outbox/destinations/wire"
)

// ParseURL reads a destination such as redis://user:password@host:6379/0?create=true. rediss is Redis
// over TLS. Several hosts, separated by commas, are nodes of one cluster. No error shows a secret.
func ParseURL(raw string) (Config, error) {
	u, err := wire.Form{ //nolint:gosec // the form of the URL, not a secret
		Name: "redis", Like: "redis://user:password@host:6379/0?create=true",
		Ports: map[string]string{"redis": defaultPort, "rediss": defaultPort}, Path: "the number of a database",
	}.Parse(raw)
	if err != nil {
		return Config{}, err
	}
	db := 0
	if u.Path != "" {
		if db, err = strconv.Atoi(u.Path); err != nil || db < 0 {
			return Config{}, u.BadPath()
		}
	}
	o := u.Options
	config := Config{
		Addresses: u.Addresses, Cluster: o.Bool("cluster"), Username: u.User.Username(), Password: u.Password(), TLS: o.TLS(u.Scheme == "rediss"),
		DB: db, Prefix: o.String("prefix", ""), Create: o.Bool("create"), MaxLen: o.Int("maxlen", 0),
		Wait: o.Int("wait", 0), WaitTimeout: o.Duration("wait-timeout", DefaultWaitTimeout), MaxSize: o.Int("max-size", DefaultMaxSize),
		Format: o.Format(),
	}
	return config, u.Err(config.validate())
}
