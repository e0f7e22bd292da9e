package consumer

import (
	"errors"

	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/destinations/redis/internal/field"
)

// decode makes an event of an entry's fields: as the publisher wrote it.
func decode(topic string, fields map[string]string, attempt int) consume.Delivery {
	payload, has := fields[field.Payload]
	key := fields[field.Key]
	delete(fields, field.Payload)
	delete(fields, field.Key)
	message, err := field.Binding.Decode(fields, []byte(payload))
	if err == nil && !has {
		err = errors.New("the entry has no field " + field.Payload)
		message.Headers = fields // a dead letter has all that the entry had
	}
	message.Topic, message.Attempt = topic, attempt
	if key != "" {
		message.Key = key
	}
	return consume.Delivery{Message: message, Err: err}
}
