// Package header writes the fields of an event as the headers of a record, and reads them back.
package header

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/wire"
)

// binding is Kafka's of CloudEvents.
var binding = wire.Binding{Prefix: "ce_", ContentType: "content-type"}

// Encode makes the headers of an event.
func Encode(format wire.Format, m *outbox.Message) []kgo.RecordHeader {
	attributes := binding.Attributes(format, m)
	headers := make([]kgo.RecordHeader, len(attributes))
	for i, a := range attributes {
		headers[i] = kgo.RecordHeader{Key: a.Name, Value: []byte(a.Value)}
	}
	return headers
}

// Decode is the reverse of Encode.
func Decode(headers []kgo.RecordHeader, payload []byte) (outbox.Message, error) {
	attributes := make(map[string]string, len(headers))
	for _, h := range headers {
		attributes[h.Key] = string(h.Value)
	}
	return binding.Decode(attributes, payload)
}
