package gcppubsub

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/protobuf/proto"

	"github.com/packfinderz/outbox"
)

// The limits of the service. A request with one message beyond them fails as a whole, so
// they are checked before.
const (
	maxRequestBytes   = 10_000_000
	maxAttributes     = 100
	maxAttributeName  = 256
	maxAttributeValue = 1024
	maxOrderingKey    = 1024
)

// How a CloudEvent is written in the attributes of a message.
const (
	cePrefix      = "ce-"
	ceContentType = "Content-Type"
)

var topicName = regexp.MustCompile(`^projects/[^/]+/topics/[A-Za-z][A-Za-z0-9._~+%-]{2,254}$`)

// topic is the full name of the topic that a message goes to.
func (p *Publisher) topic(message *outbox.Message) (string, error) {
	if message.Topic == "" {
		return "", errors.New("the event has no topic; set one with --topic-default")
	}
	name := p.config.topicPath(message.Topic)
	if !topicName.MatchString(name) {
		return "", outbox.Rejected(fmt.Errorf("%q cannot be the name of a Pub/Sub topic", message.Topic))
	}
	return name, nil
}

// encode makes the message that travels.
func (p *Publisher) encode(message *outbox.Message) (*pubsubpb.PubsubMessage, error) {
	attributes, err := p.attributes(message)
	if err != nil {
		return nil, outbox.Rejected(err)
	}
	encoded := &pubsubpb.PubsubMessage{Data: message.Payload, Attributes: attributes}
	if p.config.Unordered {
		return encoded, nil
	}
	if len(message.Key) > maxOrderingKey {
		return nil, outbox.Rejected(fmt.Errorf("the key has %d bytes; a Pub/Sub ordering key has at most %d", len(message.Key), maxOrderingKey))
	}
	if !utf8.ValidString(message.Key) {
		return nil, outbox.Rejected(errors.New("the key is not valid UTF-8, and cannot be a Pub/Sub ordering key"))
	}
	encoded.OrderingKey = message.Key
	return encoded, nil
}

func (p *Publisher) attributes(message *outbox.Message) (map[string]string, error) {
	list := p.config.Format.Attributes(message, cePrefix)
	attributes := make(map[string]string, len(list)+1)
	for _, a := range list {
		attributes[a.Name] = a.Value
	}
	if p.config.Format.CloudEvents && message.ContentType != "" {
		attributes[ceContentType] = message.ContentType
	}
	if len(attributes) > maxAttributes {
		return nil, fmt.Errorf("it has %d attributes; a Pub/Sub message has at most %d", len(attributes), maxAttributes)
	}
	for name, value := range attributes {
		if err := checkAttribute(name, value); err != nil {
			return nil, err
		}
	}
	return attributes, nil
}

func checkAttribute(name, value string) error {
	switch {
	case name == "":
		return errors.New("a header has no name, and cannot be a Pub/Sub attribute")
	case len(name) > maxAttributeName:
		return fmt.Errorf("the name of header %.40q... has %d bytes; a Pub/Sub attribute's has at most %d", name, len(name), maxAttributeName)
	case strings.HasPrefix(name, "goog"):
		return fmt.Errorf("header %q begins with goog, which Pub/Sub keeps to itself", name)
	case len(value) > maxAttributeValue:
		return fmt.Errorf("the value of %q has %d bytes; a Pub/Sub attribute's has at most %d", name, len(value), maxAttributeValue)
	case !utf8.ValidString(name), !utf8.ValidString(value):
		return fmt.Errorf("%q is not valid UTF-8, and cannot be a Pub/Sub attribute", name)
	}
	return nil
}

// checkSize refuses a message that no request can hold.
func checkSize(topic string, message *pubsubpb.PubsubMessage) (int, error) {
	size := proto.Size(&pubsubpb.PublishRequest{Topic: topic, Messages: []*pubsubpb.PubsubMessage{message}})
	if size > maxRequestBytes {
		return 0, outbox.TooLarge(fmt.Errorf("the message has %d bytes; Pub/Sub takes at most %d", size, maxRequestBytes))
	}
	return size, nil
}
