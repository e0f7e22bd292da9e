package redis

import (
	"fmt"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/redis/internal/field"
)

// maxAttributes keeps an entry within what a script can hand to a command (some 8,000 strings).
const maxAttributes = 3000

// encode makes an entry of a message: the names and values of its fields, and their size in bytes.
func encode(config *Config, message *outbox.Message) ([]any, int, error) {
	if message.Topic == "" {
		return nil, 0, outbox.ErrNoTopic
	}
	attributes := field.Binding.Attributes(config.Format, message)
	if len(attributes) > maxAttributes {
		return nil, 0, outbox.Rejected(fmt.Errorf("the event has %d headers; an entry can have about %d", len(message.Headers), maxAttributes))
	}
	fields := make([]any, 0, 2*len(attributes)+4)
	fields = append(fields, field.Payload, message.Payload)
	size := len(message.Payload) + len(message.Key)
	if message.Key != "" {
		fields = append(fields, field.Key, message.Key)
	}
	for _, a := range attributes {
		if a.Name == field.Payload || a.Name == field.Key {
			return nil, 0, outbox.Rejected(fmt.Errorf("the header %q has the name of another field of the entry", a.Name))
		}
		fields = append(fields, a.Name, a.Value)
		size += len(a.Name) + len(a.Value)
	}
	if size > config.MaxSize {
		return nil, 0, outbox.TooLarge(fmt.Errorf("the event has %d bytes; the limit is %d (?max-size)", size, config.MaxSize))
	}
	return fields, size, nil
}
