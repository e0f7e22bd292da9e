// Package header writes the fields of an event as the headers of a record, and reads them back.
package header

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/wire"
)

// How a CloudEvent is written.
const (
	cloudEvents = "ce_"
	contentType = "content-type"
)

// Encode makes the headers of an event.
func Encode(format wire.Format, m *outbox.Message) []kgo.RecordHeader {
	attributes := format.Attributes(m, cloudEvents)
	headers := make([]kgo.RecordHeader, 0, len(attributes)+1)
	own := format.CloudEvents && m.ContentType != ""
	if own {
		headers = append(headers, kgo.RecordHeader{Key: contentType, Value: []byte(m.ContentType)})
	}
	for _, a := range attributes {
		if own && a.Name == contentType {
			continue // the event's field stands
		}
		headers = append(headers, kgo.RecordHeader{Key: a.Name, Value: []byte(a.Value)})
	}
	return headers
}

// Decode is the reverse of Encode. A record that is no event has all its headers, for who reads
// the dead letter.
func Decode(headers []kgo.RecordHeader, payload []byte) (outbox.Message, error) {
	attributes := make(map[string]string, len(headers))
	for _, h := range headers {
		attributes[h.Key] = string(h.Value)
	}
	message, err := wire.Decode(attributes, payload, cloudEvents)
	if err != nil {
		message.Headers = attributes
		return message, err
	}
	if media, ok := message.Headers[contentType]; ok && message.ContentType == "" {
		message.ContentType = media
		delete(message.Headers, contentType)
	}
	return message, nil
}
