package consumer

import (
	"errors"

	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/destinations/redis/internal/field"
	"github.com/packfinderz/outbox/destinations/wire"
)

// delivery makes an event of an entry's fields: as the publisher wrote it.
func delivery(topic string, fields map[string]string, attempt int) consume.Delivery {
	payload, has := fields[field.Payload]
	key := fields[field.Key]
	delete(fields, field.Payload)
	delete(fields, field.Key)
	message, err := wire.Decode(fields, []byte(payload), field.CloudEventsPrefix)
	if err == nil && !has {
		err = errors.New("the entry has no field " + field.Payload)
	}
	if err != nil {
		message.Headers = fields // a dead letter has all that the entry had
	} else if _, cloudEvent := fields[field.CloudEventsPrefix+"specversion"]; cloudEvent {
		message.ContentType = message.Headers[field.ContentType]
		delete(message.Headers, field.ContentType)
	}
	message.Topic, message.Attempt = topic, attempt
	if key != "" {
		message.Key = key
	}
	return consume.Delivery{Message: message, Err: err}
}
