package natsjs

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/packfinderz/outbox/destinations/wire"
)

// DefaultWindow is how many messages wait for their acknowledgement at once. A server buffers
// 10,000 for each stream and refuses more.
const DefaultWindow = 4096

// Config says where to publish and how.
type Config struct {
	// Servers are the addresses of the servers of one cluster, host:port. At least one.
	Servers []string
	// TLS demands an encrypted connection; it is on when CA or Cert is set.
	TLS bool
	// CA is a file with the certificates to trust, PEM; the system's when empty.
	CA string
	// Cert and Key are files with a client's certificate and its key, PEM.
	Cert, Key string
	// User and Password, or Token, are what the server asks for, or
	User, Password, Token string
	// Creds is a file with a user's JWT and seed.
	Creds string

	// Stream is the stream that has to take the messages; when empty, whichever has their
	// subject.
	Stream string
	// SubjectPrefix is put before the topic, as it is, to make the subject.
	SubjectPrefix string
	// Create makes the stream of a subject that none has: Stream, or one named after the
	// subject. For demonstrations: it has the server's defaults and keeps everything.
	Create bool
	// SyncAlways says that the servers have sync_interval: always, so that Warnings need not tell
	// of it. It changes nothing else.
	SyncAlways bool
	// Format is how the event's fields are written as headers.
	Format wire.Format
	// Window is how many messages wait for their acknowledgement at once. Default
	// DefaultWindow.
	Window int
}

// ParseURL reads a destination such as nats://user:password@host:4222,host2:4222?create=true.
// Its errors never show a secret.
func ParseURL(raw string) (Config, error) {
	config, err := parseURL(raw)
	if err != nil {
		return Config{}, fmt.Errorf("NATS destination: %w", err)
	}
	if _, err := config.ClientOptions(); err != nil {
		return Config{}, fmt.Errorf("NATS destination: %w", err)
	}
	return config, nil
}

func parseURL(raw string) (Config, error) {
	scheme, rest, _ := strings.Cut(raw, "://")
	if scheme != "nats" && scheme != "tls" {
		return Config{}, errors.New("it begins with nats:// or tls://")
	}
	rest, query, _ := strings.Cut(rest, "?")
	config := Config{TLS: scheme == "tls"}
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		if err := config.readUser(rest[:at]); err != nil {
			return Config{}, err
		}
		rest = rest[at+1:]
	}
	rest = strings.TrimSuffix(rest, "/")
	if strings.ContainsAny(rest, "/#") {
		return Config{}, errors.New("after the hosts only options may follow: nats://host:4222?create=true")
	}
	if rest != "" {
		config.Servers = strings.Split(rest, ",")
	}
	options := wire.ParseOptions(query)
	config.Stream = options.String("stream", "")
	config.SubjectPrefix = options.String("subject-prefix", "")
	config.Create = options.Bool("create")
	config.SyncAlways = options.Bool("sync-always")
	config.Creds = options.String("creds", "")
	config.CA = options.String("ca", "")
	config.Cert = options.String("cert", "")
	config.Key = options.String("key", "")
	config.Window = options.Int("window", DefaultWindow)
	config.Format = options.Format()
	return config, options.Err()
}

// readUser reads user:password, or a token.
func (c *Config) readUser(text string) error {
	name, password, found := strings.Cut(text, ":")
	name, err := url.PathUnescape(name)
	if err != nil {
		return errors.New("the user name or token has a percent sign that is not followed by two hexadecimal digits")
	}
	if !found {
		c.Token = name
		return nil
	}
	if password, err = url.PathUnescape(password); err != nil {
		return errors.New("the password has a percent sign that is not followed by two hexadecimal digits")
	}
	c.User, c.Password = name, password
	return nil
}

// check refuses what cannot work.
func (c *Config) check() error {
	if len(c.Servers) == 0 {
		return errors.New("no server is named, as in nats://host:4222")
	}
	if c.Window < 0 {
		return fmt.Errorf("the window is %d; it must be above zero", c.Window)
	}
	if (c.Cert == "") != (c.Key == "") {
		return errors.New("a client's certificate and its key go together: cert and key")
	}
	if c.Creds != "" && (c.User != "" || c.Token != "") {
		return errors.New("credentials are given twice: in creds, and before the host")
	}
	if c.Stream != "" && strings.ContainsAny(c.Stream, " \t\r\n.*>/\\") {
		return fmt.Errorf("%q cannot be the name of a stream: no spaces, dots, slashes, * or >", c.Stream)
	}
	if c.SubjectPrefix != "" {
		if err := checkSubject(c.SubjectPrefix + "x"); err != nil {
			return fmt.Errorf("subject prefix %q: %w", c.SubjectPrefix, err)
		}
	}
	return nil
}
