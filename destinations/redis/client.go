package redis

import (
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/packfinderz/outbox/destinations/wire"
)

const (
	dialTimeout = 5 * time.Second
	ioTimeout   = 30 * time.Second
)

// ClientOptions returns the options of a Redis client that reaches the servers as the publisher does. It
// rejects a configuration that cannot work.
func (c Config) ClientOptions() (*goredis.UniversalOptions, error) {
	if err := c.withDefaults().validate(); err != nil {
		return nil, err
	}
	addresses, err := wire.Addresses(c.Addresses, defaultPort)
	if err != nil {
		return nil, err
	}
	return &goredis.UniversalOptions{
		Addrs: addresses, IsClusterMode: c.Cluster, Username: c.Username, Password: c.Password, DB: c.DB, TLSConfig: c.TLS,
		Protocol: 2,
		// No retries here: the relay has its own.
		MaxRetries: -1, DialerRetries: 1, DialTimeout: dialTimeout,
		// The context's deadline counts; this is for calls that have none.
		ContextTimeoutEnabled: true, ReadTimeout: ioTimeout, WriteTimeout: ioTimeout,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}, nil
}
