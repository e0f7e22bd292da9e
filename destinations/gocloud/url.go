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

// ParseURL reads a destination such as
//
//	awssns:///arn:aws:sns:eu-west-1:123456789012:orders?region=eu-west-1
//	awssqs://sqs.eu-west-1.amazonaws.com/123456789012/{topic}.fifo?region=eu-west-1
//	azuresb://orders
//	mem://orders
//
// The options format and source are read here; all others are the driver's.
func ParseURL(raw string) (Config, error) {
	place, query, _ := strings.Cut(raw, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return Config{}, errors.New("the part after the question mark is not written as name=value&name=value")
	}
	own := make(url.Values)
	for _, name := range []string{"format", "source"} {
		if values.Has(name) {
			own[name] = values[name]
			values.Del(name)
		}
	}
	options := wire.ParseOptions(own.Encode())
	config := Config{URL: place, Format: options.Format()}
	if len(values) > 0 {
		config.URL += "?" + values.Encode()
	}
	if err := options.Err(); err != nil {
		return Config{}, err
	}
	return config, checkURL(strings.ReplaceAll(config.URL, placeholder, "any"))
}

// checkURL refuses what no driver can open. The URL is not repeated: something secret may
// have been written into it.
func checkURL(raw string) error {
	u, err := url.Parse(raw)
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
