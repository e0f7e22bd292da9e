package gcppubsub

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/protobuf/proto"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/gcppubsub/internal/attribute"
	"github.com/packfinderz/outbox/destinations/gcppubsub/internal/resource"
)

// The limits of the service. They are checked here, because one message beyond them fails the whole request.
const (
	maxRequestBytes = 10_000_000
	maxOrderingKey  = 1024
)

// topic is the full name of the topic that a message goes to.
func (p *Publisher) topic(message *outbox.Message) (string, error) {
	if message.Topic == "" {
		return "", outbox.ErrNoTopic
	}
	name := resource.Topic(p.config.Project, message.Topic)
	if !resource.IsTopic(name) {
		return "", outbox.Rejected(fmt.Errorf("%q cannot be the name of a Pub/Sub topic", message.Topic))
	}
	return name, nil
}

// encode makes the message that travels.
func (p *Publisher) encode(message *outbox.Message) (*pubsubpb.PubsubMessage, error) {
	attributes, err := attribute.Encode(p.config.Format, message)
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

// checkSize refuses a message that no request can hold.
func checkSize(topic string, message *pubsubpb.PubsubMessage) (int, error) {
	size := proto.Size(&pubsubpb.PublishRequest{Topic: topic, Messages: []*pubsubpb.PubsubMessage{message}})
	if size > maxRequestBytes {
		return 0, outbox.TooLarge(fmt.Errorf("the message has %d bytes; Pub/Sub takes at most %d", size, maxRequestBytes))
	}
	return size, nil
}
