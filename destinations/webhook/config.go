package webhook

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/packfinderz/outbox/destinations/wire"
)

// Defaults of Config.
const (
	DefaultTimeout     = 15 * time.Second
	DefaultConcurrency = 16
)

// Config configures a publisher. Only URL is required.
type Config struct {
	// URL is the receiver's URL, http or https, with its own path and query. A user and password in it are sent as
	// basic authentication.
	URL string
	// Authorization is the value of the header of that name, such as "Bearer …".
	Authorization string
	// Secrets sign every request, each by itself, so that a receiver can change from one to the next: "whsec_" and
	// 24 to 64 bytes in base64. Without any, requests are unsigned.
	Secrets []string
	// TLS is for your own certificates. Default: the system's.
	TLS *tls.Config

	// AllowPrivate lets requests go to private, loopback and link-local addresses.
	AllowPrivate bool
	// Terminal are the statuses, from 400 to 599, that make an event dead at once, such as 400 and 422. Default:
	// none; an event is dead when its attempts are used up.
	Terminal []int
	// Timeout limits one request. Default 15 s.
	Timeout time.Duration
	// Concurrency is how many requests are under way at once. Default 16.
	Concurrency int
	// Format is the format of an event's fields.
	Format wire.Format
}

// String returns the receiver's scheme and host: everything else may be secret.
func (c Config) String() string {
	target, err := url.Parse(c.URL)
	if err != nil {
		return "webhook"
	}
	return "webhook " + target.Scheme + "://" + target.Host
}

// GoString returns String.
func (c Config) GoString() string { return c.String() }

func (c Config) withDefaults() Config {
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.Concurrency = cmp.Or(c.Concurrency, DefaultConcurrency)
	c.TLS = c.TLS.Clone()
	return c
}

// validate rejects a configuration that cannot work. No error quotes the URL: it may contain a secret.
func (c Config) validate() error {
	target, err := url.Parse(c.URL)
	switch {
	case err != nil:
		return errors.New("webhook: the URL is invalid (a character such as a space or % has to be escaped)")
	case target.Scheme != "http" && target.Scheme != "https":
		return errors.New("webhook: the URL begins with neither https:// nor http://")
	case target.Hostname() == "":
		return errors.New("webhook: the URL has no host; it looks like https://example.com/hook")
	case target.Fragment != "":
		return errors.New("webhook: Config.URL has a part after #; options there are read by ParseURL")
	case target.User != nil && c.Authorization != "":
		return errors.New("webhook: there is a user in the URL and an authorization besides; keep one")
	case c.Timeout < 0 || c.Concurrency < 0:
		return errors.New("webhook: Timeout and Concurrency must not be negative")
	}
	for _, status := range c.Terminal {
		if status < 400 || status > 599 {
			return fmt.Errorf("webhook: status %d cannot be terminal; choose from 400 to 599", status)
		}
	}
	if problem := valueProblem(c.Authorization); problem != "" {
		return errors.New("webhook: the authorization " + problem)
	}
	_, err = newSigner(c.Secrets)
	return err
}
