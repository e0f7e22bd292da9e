package gocloud

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"gocloud.dev/pubsub"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/wire"
)

// placeholder is where a message's topic goes in a URL.
const placeholder = "{topic}"

// What can be a name at any of the services and is one step of a path.
var topicName = regexp.MustCompile(`^[A-Za-z0-9_~+-][A-Za-z0-9._~+-]*$`)

// Config configures a publisher.
type Config struct {
	// URL names the topic or queue, in the driver's own way. {topic} in it is replaced by the topic of
	// each message; without it all messages go to one place.
	URL string
	// Format is the format of an event's fields.
	Format wire.Format
}

// validate rejects what no driver can open. No error quotes the URL: it may contain a secret.
func (c Config) validate() error {
	u, err := url.Parse(strings.ReplaceAll(c.URL, placeholder, "any"))
	switch {
	case err != nil:
		return errors.New("the destination is not a URL")
	case !pubsub.DefaultURLMux().ValidTopicScheme(u.Scheme):
		return fmt.Errorf("there is no driver for %q", u.Scheme+"://")
	case u.User != nil:
		return fmt.Errorf("a user or password has no place in %s://; the driver takes its credentials from the environment", u.Scheme)
	case u.Host == "" && strings.Trim(u.Path, "/") == "":
		return fmt.Errorf("%s:// names no topic", u.Scheme)
	}
	return nil
}

// hasTopic reports whether events of different topics go to different places.
func (c Config) hasTopic() bool { return strings.Contains(c.URL, placeholder) }

// topicURL is where a message goes.
func (c Config) topicURL(message *outbox.Message) (string, error) {
	switch {
	case !c.hasTopic():
		return c.URL, nil
	case message.Topic == "":
		return "", outbox.ErrNoTopic
	case !topicName.MatchString(message.Topic):
		return "", outbox.Rejected(fmt.Errorf("%q cannot stand for %s in the destination: only letters, digits and ._~+- can", message.Topic, placeholder))
	}
	return strings.ReplaceAll(c.URL, placeholder, message.Topic), nil
}
