package redis

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/packfinderz/outbox/destinations/wire"
)

// Defaults of Config.
const (
	// DefaultMaxSize is Redis's own limit of one value (proto-max-bulk-len).
	DefaultMaxSize     = 512 << 20
	DefaultWaitTimeout = 5 * time.Second
)

const defaultPort = "6379"

// Config configures a publisher.
type Config struct {
	// Addresses are the servers, as host:port. Several are nodes of one Redis Cluster.
	Addresses []string
	// Cluster says that a single address is a node of a Redis Cluster, too.
	Cluster bool
	// Username and Password are the credentials. Without a username, the password is the default user's.
	Username, Password string
	// TLS is set to connect over TLS.
	TLS *tls.Config
	// DB is the number of the database; a cluster has only 0.
	DB int

	// Prefix stands before the topic in the name of the stream.
	Prefix string
	// Create creates missing streams. Without it, events for a missing stream wait.
	Create bool
	// MaxLen trims a stream to about this many entries; zero never trims. Trimming takes the
	// oldest entries, read or not.
	MaxLen int
	// Wait is how many replicas must have an event before it counts as published. Zero means the primary only. It
	// cannot be used with a cluster.
	Wait int
	// WaitTimeout is how long the replicas have to confirm. Default 5 s.
	WaitTimeout time.Duration
	// MaxSize limits one event, payload and attributes, in bytes. Default DefaultMaxSize. It must not
	// be above the server's proto-max-bulk-len, which cuts the connection.
	MaxSize int
	// Format is the format of an event's fields.
	Format wire.Format
}

func (c Config) withDefaults() Config {
	c.WaitTimeout = cmp.Or(c.WaitTimeout, DefaultWaitTimeout)
	c.MaxSize = cmp.Or(c.MaxSize, DefaultMaxSize)
	return c
}

func (c Config) validate() error {
	clustered := c.Cluster || len(c.Addresses) > 1
	switch {
	case c.DB < 0 || c.MaxLen < 0 || c.Wait < 0 || c.MaxSize < 0:
		return errors.New("DB, MaxLen, Wait and MaxSize must not be negative")
	case c.WaitTimeout < time.Millisecond:
		return fmt.Errorf("WaitTimeout is %s; it must be 1ms or more", c.WaitTimeout)
	case c.Wait > 0 && clustered:
		return errors.New("the setting Wait does not go with a cluster")
	case c.DB != 0 && clustered:
		return fmt.Errorf("a cluster has only database 0, not %d", c.DB)
	}
	return nil
}
