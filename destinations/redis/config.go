// Package redis publishes events to Redis Streams. Package redis/consumer consumes them.
package redis

import (
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/packfinderz/outbox/destinations/wire"
)

const (
	// DefaultMaxSize is Redis's own limit of one value (proto-max-bulk-len).
	DefaultMaxSize = 512 << 20
	// DefaultWaitTimeout is how long replicas have to confirm.
	DefaultWaitTimeout = 5 * time.Second
)

// Config says where the streams are and how events are added to them.
type Config struct {
	// Addresses are the servers as host:port. Several are nodes of one Redis Cluster.
	Addresses []string
	// Cluster says that a single address is a node of a Redis Cluster, too.
	Cluster bool
	// Username and Password are the credentials; without a username it is the default user's
	// password.
	Username, Password string
	// DB is the number of the database; a cluster has only 0.
	DB int
	// TLS is set for connections over TLS.
	TLS *tls.Config

	// Prefix stands before the topic in the name of the stream.
	Prefix string
	// Create has missing streams created. Without it, events for a missing stream fail.
	Create bool
	// MaxLen trims a stream to about this many entries; zero never trims. Trimming takes the
	// oldest entries, read or not.
	MaxLen int
	// Wait is how many replicas must have an event before it counts as published. Zero asks
	// the primary only. It does not go with a cluster.
	Wait int
	// WaitTimeout is how long they have; DefaultWaitTimeout when zero.
	WaitTimeout time.Duration
	// MaxSize is the limit of one event in bytes, payload and attributes; DefaultMaxSize when
	// zero. It must not be above the server's proto-max-bulk-len, which cuts the connection.
	MaxSize int
	// Format is how an event's fields are written.
	Format wire.Format
}

// check refuses what cannot work.
func (c *Config) check() error {
	clustered := c.Cluster || len(c.Addresses) > 1
	switch {
	case len(c.Addresses) == 0:
		return errors.New("redis: no address")
	case c.DB < 0 || c.MaxLen < 0 || c.Wait < 0 || c.WaitTimeout != 0 && c.WaitTimeout < time.Millisecond || c.MaxSize < 0:
		return errors.New("redis: DB, MaxLen, Wait, WaitTimeout and MaxSize cannot be negative, and WaitTimeout is at least 1ms")
	case c.Wait > 0 && clustered:
		return errors.New("redis: Wait does not go with a cluster")
	case c.DB != 0 && clustered:
		return fmt.Errorf("redis: a cluster has only database 0, not %d", c.DB)
	}
	return nil
}

// ClientOptions are those of a client of the servers, for one of one's own: where they are, and
// what they ask for. It refuses a configuration that cannot work.
func (c Config) ClientOptions() (*goredis.UniversalOptions, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return &goredis.UniversalOptions{
		Addrs: c.Addresses, IsClusterMode: c.Cluster, Username: c.Username, Password: c.Password, DB: c.DB, TLSConfig: c.TLS,
		Protocol: 2,
		// What failed is told at once: the relay tries again by its own rules, and knows that it
		// does.
		MaxRetries: -1, DialerRetries: 1, DialTimeout: dialTimeout,
		// The context's deadline counts; this is for calls that have none.
		ContextTimeoutEnabled: true, ReadTimeout: ioTimeout, WriteTimeout: ioTimeout,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}, nil
}

const (
	dialTimeout = 5 * time.Second
	ioTimeout   = 30 * time.Second
)
