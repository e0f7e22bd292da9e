package natsjs

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

const defaultPort = "4222"

const (
	dialTimeout = 2 * time.Second
	// writeTimeout ends a connection whose other side does not read any more.
	writeTimeout = 5 * time.Second
	// A connection that says nothing for three of these is given up.
	pingEvery    = 5 * time.Second
	pingsMissing = 2
	// The wait before the connection is tried again doubles from the first to the last.
	firstWait, lastWait = 100 * time.Millisecond, 2 * time.Second
)

// ClientOptions are those of a connection to the servers, for a client of one's own: where they
// are, what they ask for, and that a connection that is lost is made again, without end. It
// refuses a configuration that cannot work.
func (c Config) ClientOptions() (nats.Options, error) {
	options := nats.GetDefaultOptions()
	if err := c.check(); err != nil {
		return options, err
	}
	for _, server := range c.Servers {
		address, err := withPort(server)
		if err != nil {
			return options, err
		}
		options.Servers = append(options.Servers, "nats://"+address)
	}
	options.Timeout, options.FlusherTimeout = dialTimeout, writeTimeout
	options.PingInterval, options.MaxPingsOut = pingEvery, pingsMissing
	options.MaxReconnect, options.CustomReconnectDelayCB = -1, reconnectDelay
	// Credentials that were refused may be mended while the program runs.
	options.IgnoreAuthErrorAbort = true
	// What cannot be sent now is the caller's to keep.
	options.ReconnectBufSize = -1
	if err := c.authenticate(&options); err != nil {
		return options, fmt.Errorf("read the credentials: %w", err)
	}
	if err := c.encrypt(&options); err != nil {
		return options, fmt.Errorf("set up TLS: %w", err)
	}
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
		options.User, options.Password = c.User, c.Password
	}
	return nil
}

// encrypt demands TLS if anything asks for it. The options read their files, so that a wrong name
// is told at once.
func (c Config) encrypt(options *nats.Options) error {
	options.Secure = c.TLS
	if c.CA != "" {
		if err := nats.RootCAs(c.CA)(options); err != nil {
			return err
		}
	}
	if c.Cert != "" {
		return nats.ClientCert(c.Cert, c.Key)(options)
	}
	return nil
}

func withPort(server string) (string, error) {
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		host, port = strings.Trim(server, "[]"), defaultPort
		if strings.Contains(host, ":") && !strings.HasPrefix(server, "[") {
			return "", fmt.Errorf("%q is no host:port", server)
		}
	}
	if host == "" || strings.ContainsAny(host, " \t\r\n@?") {
		return "", fmt.Errorf("%q is no host:port", server)
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return "", fmt.Errorf("%q is no port", port)
	}
	return net.JoinHostPort(host, port), nil
}

func reconnectDelay(attempts int) time.Duration {
	wait := min(firstWait<<min(attempts, 16), lastWait)
	return wait/2 + rand.N(wait/2) //nolint:gosec // a jitter is no secret
}
