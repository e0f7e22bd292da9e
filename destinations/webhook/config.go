package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/packfinderz/outbox/destinations/wire"
)

// SecretVariable is the environment variable that ParseURL takes the secrets from where the
// URL names no file.
const SecretVariable = "OUTBOX_WEBHOOK_SECRET" //nolint:gosec // the name of the variable, not a secret

// Defaults of Config.
const (
	DefaultTimeout     = 15 * time.Second
	DefaultConcurrency = 16
)

// Config says where events are posted, and how. Only URL is needed.
type Config struct {
	// URL is the receiver's, http or https, with its own path and query. A user and password
	// in it are sent as basic authentication.
	URL string
	// Secrets sign every request, each for itself, so that a receiver can change from one to
	// the next: "whsec_" and 24 to 64 bytes in base64. None leaves requests unsigned.
	Secrets []string
	// Authorization is the value of the header of that name, such as "Bearer …".
	Authorization string
	// TLS is for certificates of one's own; nil for the system's.
	TLS *tls.Config
	// Format is how the event's fields are written as headers.
	Format wire.Format
	// Timeout bounds one request. Default 15 s.
	Timeout time.Duration
	// Concurrency is how many requests are under way at once. Default 16.
	Concurrency int
	// Terminal are the statuses, of 400 to 599, after which an event is dead at once, such as 400
	// and 422. Default: none; an event is dead when its attempts are used up.
	Terminal []int
	// AllowPrivate lets requests go to private, loopback and link-local addresses.
	AllowPrivate bool
}

// String is the receiver's scheme and host: everything else may be secret.
func (c Config) String() string {
	target, err := url.Parse(c.URL)
	if err != nil {
		return "webhook"
	}
	return "webhook " + target.Scheme + "://" + target.Host
}

// GoString is String.
func (c Config) GoString() string { return c.String() }

// ParseURL reads a destination. Its options stand in the fragment, which is never sent, so
// that none is taken for a parameter of the receiver's:
//
//	https://example.com/hook?own=1#format=cloudevents&timeout=5s&secret-file=/run/secrets/hook
//
// The files that it names are read now.
func ParseURL(raw string) (Config, error) {
	bare, fragment, _ := strings.Cut(raw, "#")
	if _, err := url.ParseQuery(fragment); err != nil {
		return Config{}, errors.New("webhook: the options after # are not written as name=value&name=value")
	}
	options := wire.ParseOptions(fragment)
	config := Config{
		URL: bare, Format: options.Format(), Timeout: options.Duration("timeout", DefaultTimeout),
		Concurrency: options.Int("concurrency", DefaultConcurrency), AllowPrivate: options.Bool("allow-private"),
	}
	var err error
	if config.Terminal, err = parseStatuses(options.String("terminal", "")); err != nil {
		return Config{}, err
	}
	secretFile, authorizationFile := options.String("secret-file", ""), options.String("authorization-file", "")
	caFile, certFile, keyFile := options.String("ca-file", ""), options.String("cert-file", ""), options.String("key-file", "")
	if err := options.Err(); err != nil {
		return Config{}, fmt.Errorf("webhook: %w", err)
	}
	secrets := os.Getenv(SecretVariable)
	err = errors.Join(
		readFile("secret-file", secretFile, &secrets),
		readFile("authorization-file", authorizationFile, &config.Authorization),
		config.readTLS(caFile, certFile, keyFile))
	if err != nil {
		return Config{}, fmt.Errorf("webhook: %w", err)
	}
	if secrets != "" {
		config.Secrets = strings.Fields(secrets)
	} else if secretFile != "" {
		return Config{}, fmt.Errorf("webhook: secret-file %s is empty", secretFile)
	}
	// What New would refuse is refused here, before anything is opened.
	if _, _, err := config.withDefaults(); err != nil {
		return Config{}, err
	}
	if _, err := newSigner(config.Secrets); err != nil {
		return Config{}, err
	}
	return config, nil
}

// parseStatuses reads a list such as 400,422.
func parseStatuses(text string) (list []int, err error) {
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		status, err := strconv.Atoi(part)
		if err != nil {
			return nil, fmt.Errorf("webhook: terminal=%s is no list of statuses; it looks like terminal=400,422", text)
		}
		list = append(list, status)
	}
	return list, nil
}

// readFile puts a file's text into value, unless no file is named.
func readFile(option, path string, value *string) error {
	if path == "" {
		return nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read %s: %w", option, err)
	}
	*value = strings.TrimSpace(string(content))
	return nil
}

func (c *Config) readTLS(caFile, certFile, keyFile string) error {
	if caFile == "" && certFile == "" && keyFile == "" {
		return nil
	}
	c.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile != "" {
		content, err := os.ReadFile(caFile)
		if err != nil {
			return fmt.Errorf("read ca-file: %w", err)
		}
		if c.TLS.RootCAs = x509.NewCertPool(); !c.TLS.RootCAs.AppendCertsFromPEM(content) {
			return fmt.Errorf("ca-file %s has no certificate in PEM", caFile)
		}
	}
	if certFile == "" && keyFile == "" {
		return nil
	}
	if certFile == "" || keyFile == "" {
		return errors.New("cert-file and key-file go together")
	}
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return fmt.Errorf("read cert-file and key-file: %w", err)
	}
	c.TLS.Certificates = []tls.Certificate{pair}
	return nil
}

// withDefaults fills in what is zero, refuses what cannot work, and takes the URL apart. No
// error quotes the URL: its user, path and query may be secret.
func (c Config) withDefaults() (Config, *url.URL, error) {
	target, err := url.Parse(c.URL)
	switch {
	case err != nil:
		return c, nil, errors.New("webhook: the URL is not one (a character such as a space or % has to be escaped)")
	case target.Scheme != "http" && target.Scheme != "https":
		return c, nil, errors.New("webhook: the URL begins with neither https:// nor http://")
	case target.Hostname() == "":
		return c, nil, errors.New("webhook: the URL has no host; it looks like https://example.com/hook")
	case target.Fragment != "":
		return c, nil, errors.New("webhook: Config.URL has a part after #; options there are read by ParseURL")
	case target.User != nil && c.Authorization != "":
		return c, nil, errors.New("webhook: there is a user in the URL and an authorization besides; keep one")
	case c.Timeout < 0 || c.Concurrency < 0:
		return c, nil, errors.New("webhook: the timeout or the concurrency is negative")
	}
	for _, status := range c.Terminal {
		if status < 400 || status > 599 {
			return c, nil, fmt.Errorf("webhook: status %d cannot be terminal; choose from 400 to 599", status)
		}
	}
	if problem := valueProblem(c.Authorization); problem != "" {
		return c, nil, errors.New("webhook: the authorization " + problem)
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Concurrency == 0 {
		c.Concurrency = DefaultConcurrency
	}
	c.TLS = c.TLS.Clone()
	return c, target, nil
}
