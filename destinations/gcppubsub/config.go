package gcppubsub

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"

	apiv1 "cloud.google.com/go/pubsub/v2/apiv1"

	"github.com/packfinderz/outbox/destinations/wire"
)

// A project's id, which may be preceded by the domain of its organisation, or its number.
var projectID = regexp.MustCompile(`^([a-z0-9.-]+:)?[a-z0-9][a-z0-9-]{0,61}$`)

// Config configures a publisher.
type Config struct {
	// Project is the id of the Google Cloud project that has the topics.
	Project string
	// Endpoint is the host:port of the service, for a regional endpoint or an emulator. Default:
	// PUBSUB_EMULATOR_HOST, or else the service itself.
	Endpoint string
	// Insecure connects without TLS and credentials, as emulators require. It needs an Endpoint.
	Insecure bool
	// Credentials is a JSON file with the credentials. Default: CredentialsJSON, or else the application
	// default credentials.
	Credentials string
	// CredentialsJSON is the content of such a file. A URL has no option for it: it is a secret.
	CredentialsJSON string
	// Client, such as the TopicAdminClient of a pubsub.Client, is used instead of a new one, and left open.
	// Endpoint, Insecure and the credentials must then be empty. Consumers reject it: they have their own client.
	Client *apiv1.TopicAdminClient

	// Unordered publishes without ordering keys. Messages of different keys then travel in one request,
	// which is faster, and subscribers get them in any order.
	Unordered bool
	// Create creates missing topics. Without it, events for a missing topic wait.
	Create bool
	// Format is the format of an event's fields.
	Format wire.Format
}

func (c Config) validate() error {
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
