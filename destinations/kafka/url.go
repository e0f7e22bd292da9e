package kafka

import (
	"errors"
	"fmt"

	"github.com/packfinderz/outbox/destinations/wire"
)

// ParseURL reads a destination such as kafka://user:password@host:9092,host2:9092?create=true. No
// error shows a secret.
func ParseURL(raw string) (Config, error) {
	config, err := parseURL(raw)
	if err != nil {
		return Config{}, fmt.Errorf("kafka URL: %w", err)
	}
	return config, nil
}

func parseURL(raw string) (Config, error) {
	u, err := wire.ParseURL(raw, "kafka://user:password@host:9092?create=true", map[string]string{"kafka": defaultPort})
	switch {
	case err != nil:
		return Config{}, err
	case u.Path != "":
		return Config{}, errors.New("only options may follow the hosts: kafka://host:9092?create=true")
	}
	o := u.Options
	config := Config{
		Addresses: u.Addresses, Username: u.User.Username(), Password: u.Password(),
		SASL:   o.Choice("sasl", "", plainSASL, "scram-sha-256", "scram-sha-512"),
		TLS:    o.TLS(o.Bool("tls") || o.Has("ca", "cert", "key")),
		Create: o.Bool("create"), Partitions: o.Int("partitions", 0), Replication: o.Int("replication", 0),
		BatchBytes:  o.Int("batch-bytes", DefaultBatchBytes),
		Compression: o.Choice("compression", DefaultCompression, "none", "gzip", "lz4", "zstd"),
		ClientID:    o.String("client-id", DefaultClientID),
		Format:      o.Format(),
	}
	if err := o.Err(); err != nil {
		return Config{}, err
	}
	if config.Username != "" && config.Password == "" {
		return Config{}, errors.New("a user needs a password: kafka://user:password@host:9092, or password-file=FILE")
	}
	return config, config.withDefaults().validate()
}
