package redis

import (
	"errors"

	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/wire"
)

// delivery makes an event of an entry's fields: the reverse of entry.
func delivery(topic string, fields map[string]string, attempt int) consume.Delivery {
	payload, has := fields[payloadField]
	key := fields[keyField]
	delete(fields, payloadField)
	delete(fields, keyField)
	message, err := wire.Decode(fields, []byte(payload), cloudEventsPrefix)
	if err == nil && !has {
		err = errors.New("the entry has no field " + payloadField)
	}
	if err != nil {
		message.Headers = fields // a dead letter has all that the entry had
	} else if _, cloudEvent := fields[cloudEventsPrefix+"specversion"]; cloudEvent {
		message.ContentType = message.Headers[contentTypeField]
		delete(message.Headers, contentTypeField)
	}
	message.Topic, message.Attempt = topic, attempt
	if key != "" {
		message.Key = key
	}
	return consume.Delivery{Message: message, Err: err}
}
