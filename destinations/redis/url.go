package redis

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/packfinderz/outbox/destinations/wire"
)

// ParseURL reads a destination such as redis://user:password@host:6379/0?create=true. rediss is Redis
// over TLS. Several hosts, separated by commas, are nodes of one cluster. No error shows a secret.
func ParseURL(raw string) (Config, error) {
	config, err := parseURL(raw)
	if err != nil {
		return Config{}, fmt.Errorf("redis URL: %w", err)
	}
	return config, nil
}

func parseURL(raw string) (Config, error) {
	u, err := wire.ParseURL(raw, "redis://user:password@host:6379/0?create=true", map[string]string{"redis": defaultPort, "rediss": defaultPort})
	if err != nil {
		return Config{}, err
	}
	db := uint64(0)
	if u.Path != "" {
		if db, err = strconv.ParseUint(u.Path, 10, 31); err != nil {
			return Config{}, errors.New("only the number of a database may follow the hosts")
		}
	}
	o := u.Options
	config := Config{
		Addresses: u.Addresses, Cluster: o.Bool("cluster"), Username: u.User.Username(), Password: u.Password(), TLS: o.TLS(u.Scheme == "rediss"),
		DB:     int(db), //nolint:gosec // it has 31 bits
		Prefix: o.String("prefix", ""), Create: o.Bool("create"), MaxLen: o.Int("maxlen", 0),
		Wait: o.Int("wait", 0), WaitTimeout: o.Duration("wait-timeout", DefaultWaitTimeout), MaxSize: o.Int("max-size", DefaultMaxSize),
		Format: o.Format(),
	}
	if err := o.Err(); err != nil {
		return Config{}, err
	}
	return config, config.validate()
}
