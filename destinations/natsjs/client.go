package natsjs

import (
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/packfinderz/outbox/destinations/wire"
)

const (
	dialTimeout = 2 * time.Second
	// writeTimeout ends a connection whose other side has stopped reading.
	writeTimeout = 5 * time.Second
	// A connection that is silent for three of these is given up.
	pingEvery    = 5 * time.Second
	pingsMissing = 2
	// The wait before the connection is tried again doubles from the first to the last.
	firstWait, lastWait = 100 * time.Millisecond, 2 * time.Second
)

// ClientOptions returns the options of a NATS client that reaches the servers as the publisher does, and
// restores a lost connection without end. It rejects a configuration that cannot work.
func (c Config) ClientOptions() (nats.Options, error) {
	options := nats.GetDefaultOptions()
	if err := c.validate(); err != nil {
		return options, err
	}
	addresses, err := wire.Addresses(c.Addresses, defaultPort)
	if err != nil {
		return options, err
	}
	for _, address := range addresses {
		options.Servers = append(options.Servers, "nats://"+address)
	}
	options.Timeout, options.FlusherTimeout = dialTimeout, writeTimeout
	options.PingInterval, options.MaxPingsOut = pingEvery, pingsMissing
	options.MaxReconnect, options.CustomReconnectDelayCB = -1, reconnectDelay
	// Refused credentials may be corrected while the program runs.
	options.IgnoreAuthErrorAbort = true
	// The caller keeps what cannot be sent now.
	options.ReconnectBufSize = -1
	if err := c.authenticate(&options); err != nil {
		return options, fmt.Errorf("read the credentials: %w", err)
	}
	options.Secure, options.TLSConfig = c.TLS != nil, c.TLS.Clone()
	return options, nil
}

// authenticate gives what the server asks for.
func (c Config) authenticate(options *nats.Options) error {
	switch {
	case c.Creds != "":
		// The file is read with each connection; here, a wrong name is told at once.
		file, err := os.Open(c.Creds)
		if err != nil {
			return err
		}
		_ = file.Close() // it was only looked at
		return nats.UserCredentials(c.Creds)(options)
	case c.Token != "":
		options.Token = c.Token
	default:
		options.User, options.Password = c.Username, c.Password
	}
	return nil
}

func reconnectDelay(attempts int) time.Duration {
	wait := min(firstWait<<min(attempts, 16), lastWait)
	return wait/2 + rand.N(wait/2) //nolint:gosec // a jitter is no secret
}
