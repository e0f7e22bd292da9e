package pgstream

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
)

// chunkSize is how much memory payloads are given at a time, and textsSize the same for keys.
const (
	chunkSize = 64 << 10
	textsSize = 4 << 10
)

// maxNames bounds the names that are kept: a stream has few topics and types.
const maxNames = 4096

// rowDecoder turns rows, in PostgreSQL's binary format, into messages. It is written out,
// because it is most of what a relay does with an event.
type rowDecoder struct {
	names map[string]string
	texts strings.Builder
	chunk []byte
}

// message reads the columns of eventColumns. What cannot be read makes the message invalid.
func (d *rowDecoder) message(values [][]byte, maxAttempts int) (m outbox.Message) {
	m.ID = uuid.UUID(values[0])
	m.Namespace, m.Topic, m.Type = d.name(values[1]), d.name(values[2]), d.name(values[3])
	m.Key = d.text(values[4])
	m.AggregateType, m.AggregateID = d.name(values[5]), d.text(values[6])
	if values[7] != nil {
		m.TenantID = uuid.UUID(values[7])
	}
	if values[8] != nil {
		m.Headers, m.Invalid = headers(values[8])
	}
	m.ContentType = d.name(values[9])
	m.Payload = d.bytes(values[10])
	if values[11] != nil {
		m.NotBefore = d.timestamp(values[11], "not_before", &m)
	}
	m.MaxAttempts = maxAttempts
	if values[12] != nil {
		m.MaxAttempts = int(int32Of(values[12]))
	}
	m.CreatedAt = d.timestamp(values[13], "created_at", &m)
	return m
}

// timestamp reads a time of the event; one without an end makes it invalid.
func (d *rowDecoder) timestamp(value []byte, column string, m *outbox.Message) time.Time {
	if at := int64Of(value); at == math.MaxInt64 || at == math.MinInt64 {
		if m.Invalid == nil {
			m.Invalid = fmt.Errorf("the row cannot be read: %s is infinite", column)
		}
		return time.Time{}
	}
	return timestamp(value)
}

// headers reads the binary format of jsonb, its text after a version, 1. It is a function of its
// own so that a message without headers does not go to the heap for them.
func headers(value []byte) (list map[string]string, err error) {
	if err = json.Unmarshal(value[1:], &list); err != nil {
		return nil, fmt.Errorf("the row cannot be read: the headers are not an object of strings: %w", err)
	}
	return list, nil
}

// name is a text that is the same in many events.
func (d *rowDecoder) name(value []byte) string {
	if len(value) == 0 {
		return ""
	}
	if name, ok := d.names[string(value)]; ok {
		return name
	}
	if d.names == nil || len(d.names) >= maxNames {
		d.names = make(map[string]string)
	}
	name := string(value)
	d.names[name] = name
	return name
}

// text is a text of this event only. It lies in one piece of memory with others.
func (d *rowDecoder) text(value []byte) string {
	if len(value) > d.texts.Cap()-d.texts.Len() {
		d.texts = strings.Builder{}
		d.texts.Grow(max(textsSize, len(value)))
	}
	start := d.texts.Len()
	d.texts.Write(value)
	return d.texts.String()[start:]
}

// bytes copies a payload out of the connection's buffer.
func (d *rowDecoder) bytes(value []byte) []byte {
	if len(value) > chunkSize/4 {
		return append(make([]byte, 0, len(value)), value...)
	}
	if len(value) > cap(d.chunk)-len(d.chunk) {
		d.chunk = make([]byte, 0, chunkSize)
	}
	start := len(d.chunk)
	d.chunk = append(d.chunk, value...)
	return d.chunk[start:len(d.chunk):len(d.chunk)]
}

// microsecondsTo2000 is from the Unix epoch to PostgreSQL's.
const microsecondsTo2000 = 946_684_800_000_000

func timestamp(value []byte) time.Time {
	return time.UnixMicro(int64Of(value) + microsecondsTo2000).UTC()
}

func int16Of(value []byte) int16 { return int16(binary.BigEndian.Uint16(value)) }
func int32Of(value []byte) int32 { return int32(binary.BigEndian.Uint32(value)) }
func int64Of(value []byte) int64 { return int64(binary.BigEndian.Uint64(value)) }
func boolOf(value []byte) bool   { return len(value) == 1 && value[0] == 1 }
