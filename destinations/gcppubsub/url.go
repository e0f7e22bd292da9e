package gcppubsub

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"

	"github.com/packfinderz/outbox/destinations/wire"
)

// Scheme is how a URL of this destination begins.
const Scheme = "gcppubsub"

// A project's id, which may be preceded by the domain of its organisation, or its number.
var projectID = regexp.MustCompile(`^([a-z0-9.-]+:)?[a-z0-9][a-z0-9-]{0,61}$`)

// ParseURL reads a destination such as
//
//	gcppubsub://PROJECT
//	gcppubsub://PROJECT?endpoint=127.0.0.1:8085&insecure=true
//
// with the options create, credentials, endpoint, format, insecure, ordering and source.
func ParseURL(raw string) (Config, error) {
	// A project can have a colon in it, which url.Parse takes for a port.
	rest, found := strings.CutPrefix(raw, Scheme+"://")
	if !found {
		return Config{}, errors.New("a Pub/Sub destination looks like gcppubsub://PROJECT")
	}
	project, query, _ := strings.Cut(rest, "?")
	options := wire.ParseOptions(query)
	config := Config{
		Project:     strings.TrimSuffix(project, "/"),
		Endpoint:    options.String("endpoint", ""),
		Insecure:    options.Bool("insecure"),
		Credentials: options.String("credentials", ""),
		Unordered:   options.Choice("ordering", "true", "false") == "false",
		Create:      options.Bool("create"),
		Format:      options.Format(),
	}
	if err := errors.Join(options.Err(), config.check()); err != nil {
		return Config{}, fmt.Errorf("destination %s:// : %w", Scheme, err)
	}
	return config, nil
}

func (c Config) check() error {
	switch {
	case c.Project == "":
		return errors.New("the project is missing; it looks like gcppubsub://PROJECT")
	case strings.Contains(c.Project, "@"):
		// It may be a password that was written there, and is not repeated.
		return errors.New("a user or password has no place in it; credentials are a file, credentials=FILE")
	case !projectID.MatchString(c.Project):
		return fmt.Errorf("%q is not the id of a project", c.Project)
	case c.Client != nil && (c.Endpoint != "" || c.Insecure || c.Credentials+c.CredentialsJSON != ""):
		return errors.New("a client that is given knows where the service is: leave out Endpoint, Insecure and the credentials")
	case c.Credentials != "" && c.CredentialsJSON != "":
		return errors.New("credentials are a file or the JSON itself: leave out one of the two")
	case c.Insecure && c.Credentials+c.CredentialsJSON != "":
		return errors.New("insecure sends no credentials: leave out one of the two")
	}
	if c.Endpoint != "" {
		if host, port, err := net.SplitHostPort(c.Endpoint); err != nil || host == "" || port == "" {
			return fmt.Errorf("endpoint %q is not host:port", c.Endpoint)
		}
	} else if c.Insecure {
		return errors.New("insecure goes with endpoint=host:port; the service itself is never without TLS")
	}
	return nil
}
