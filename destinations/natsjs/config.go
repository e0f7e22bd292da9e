package natsjs

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"github.com/packfinderz/outbox/destinations/wire"
)

// DefaultWindow is the default of Config.Window. A server buffers at most 10,000 messages for each stream.
const DefaultWindow = 4096

const defaultPort = "4222"

// Config configures a publisher.
type Config struct {
	// Addresses are the servers of one cluster, as host:port. At least one.
	Addresses []string
	// Username and Password are the credentials, or Token is, or
	Username, Password, Token string
	// Creds is a file with a user's JWT and seed.
	Creds string
	// TLS is set to connect over TLS.
	TLS *tls.Config

	// SubjectPrefix stands before the topic in the subject.
	SubjectPrefix string
	// Stream is the stream that must accept the messages; empty for the one that has their subject.
	Stream string
	// Create creates the missing stream of a subject: Stream, or one named after the subject. It has the server's
	// defaults and keeps everything. Without Create, events for a missing stream wait.
	Create bool
	// SyncAlways says that the servers have sync_interval: always, so that Warnings does not mention it. It has no
	// other effect.
	SyncAlways bool
	// Window is how many messages wait for their acknowledgement at once. Default DefaultWindow.
	Window int
	// Format is the format of an event's fields.
	Format wire.Format
}

func (c Config) withDefaults() Config {
	c.Window = cmp.Or(c.Window, DefaultWindow)
	return c
}

func (c Config) validate() error {
	switch {
	case c.Window < 0:
		return fmt.Errorf("the window is %d; it must be above zero", c.Window)
	case c.Creds != "" && (c.Username != "" || c.Token != ""):
		return errors.New("credentials are given twice: in creds, and before the host")
	case strings.ContainsAny(c.Stream, " \t\r\n.*>/\\"):
		return fmt.Errorf("%q cannot be the name of a stream: no spaces, dots, slashes, * or >", c.Stream)
	}
	if c.SubjectPrefix != "" {
		if err := checkSubject(c.SubjectPrefix + "x"); err != nil {
			return fmt.Errorf("subject prefix %q: %w", c.SubjectPrefix, err)
		}
	}
	return nil
}
