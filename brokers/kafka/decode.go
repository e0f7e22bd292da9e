package kafka

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/wire"
)

// decode makes an event of a record: the reverse of encode.
func (c *Config) decode(record *kgo.Record) consume.Delivery {
	attributes := make(map[string]string, len(record.Headers))
	for _, header := range record.Headers {
		attributes[header.Key] = string(header.Value)
	}
	message, err := wire.Decode(attributes, record.Value, cloudEventsPrefix)
	if err != nil {
		message.Headers = attributes // a dead letter is to have all of them
	} else if media, ok := message.Headers[contentType]; ok && message.ContentType == "" {
		message.ContentType = media
		delete(message.Headers, contentType)
	}
	message.Topic, message.Key, message.Attempt = record.Topic, string(record.Key), 1
	return consume.Delivery{Message: message, Err: err}
}
