package kafka

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/kafka/internal/header"
)

// More than Kafka needs for a record and for a header beside their bytes.
const recordOverhead, headerOverhead = 64, 10

// encode makes a record of a message, and says how large it is at most. Its time is when it is
// sent, not when the event was emitted: retention by time would delete an old event on arrival.
func (c *Config) encode(m *outbox.Message) (*kgo.Record, int) {
	record := &kgo.Record{Topic: m.Topic, Value: m.Payload, Headers: header.Encode(c.Format, m)}
	if m.Key != "" {
		record.Key = []byte(m.Key)
	}
	if record.Value == nil {
		record.Value = []byte{} // none at all would mean that the key is deleted
	}
	size := recordOverhead + len(record.Key) + len(record.Value)
	for _, h := range record.Headers {
		size += headerOverhead + len(h.Key) + len(h.Value)
	}
	return record, size
}
