package consumer

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/destinations/kafka/internal/header"
)

// decode makes an event of a record.
func decode(record *kgo.Record) consume.Delivery {
	message, err := header.Decode(record.Headers, record.Value)
	message.Topic, message.Key, message.Attempt = record.Topic, string(record.Key), 1
	return consume.Delivery{Message: message, Err: err}
}
