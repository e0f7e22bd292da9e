package kafka

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/packfinderz/outbox"
)

const (
	cloudEventsPrefix = "ce_"
	contentType       = "content-type"
	// More than Kafka needs for a record and for a header beside their bytes.
	recordOverhead, headerOverhead = 64, 10
)

// encode makes a record of a message, and says how large it is at most. Its time is when it is
// sent, not when the event was emitted: retention by time would delete an old event on arrival.
func (c *Config) encode(m *outbox.Message) (*kgo.Record, int) {
	record := &kgo.Record{Topic: m.Topic, Value: m.Payload}
	if m.Key != "" {
		record.Key = []byte(m.Key)
	}
	if record.Value == nil {
		record.Value = []byte{} // none at all would mean that the key is deleted
	}
	size := recordOverhead + len(record.Key) + len(record.Value)
	attributes := c.Format.Attributes(m, cloudEventsPrefix)
	record.Headers = make([]kgo.RecordHeader, 0, len(attributes)+1)
	add := func(name, value string) {
		record.Headers = append(record.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
		size += headerOverhead + len(name) + len(value)
	}
	own := c.Format.CloudEvents && m.ContentType != ""
	if own {
		add(contentType, m.ContentType)
	}
	for _, a := range attributes {
		if own && a.Name == contentType {
			continue // the event's field stands
		}
		add(a.Name, a.Value)
	}
	return record, size
}
