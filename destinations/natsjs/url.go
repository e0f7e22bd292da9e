package natsjs

import (
	"errors"
	"fmt"

	"github.com/packfinderz/outbox/destinations/wire"
)

// ParseURL reads a destination such as nats://user:password@host:4222,host2:4222?create=true, or with a
// token alone before the @. tls is NATS over TLS. No error shows a secret.
func ParseURL(raw string) (Config, error) {
	config, err := parseURL(raw)
	if err != nil {
		return Config{}, fmt.Errorf("NATS URL: %w", err)
	}
	return config, nil
}

func parseURL(raw string) (Config, error) {
	u, err := wire.ParseURL(raw, "nats://user:password@host:4222?create=true", map[string]string{"nats": defaultPort, "tls": defaultPort})
	switch {
	case err != nil:
		return Config{}, err
	case u.Path != "":
		return Config{}, errors.New("only options may follow the hosts: nats://host:4222?create=true")
	}
	o := u.Options
	config := Config{
		Addresses: u.Addresses, Username: u.User.Username(), Password: u.Password(), Creds: o.String("creds", ""),
		TLS:           o.TLS(u.Scheme == "tls" || o.Has("ca", "cert", "key")),
		SubjectPrefix: o.String("subject-prefix", ""), Stream: o.String("stream", ""), Create: o.Bool("create"), SyncAlways: o.Bool("sync-always"),
		Window: o.Int("window", DefaultWindow), Format: o.Format(),
	}
	if _, has := u.User.Password(); !has && config.Password == "" {
		config.Username, config.Token = "", config.Username
	}
	if err := o.Err(); err != nil {
		return Config{}, err
	}
	_, err = config.ClientOptions()
	return config, err
}
