package wire

import (
	"cmp"
	"time"

	"github.com/packfinderz/outbox"
)

// DefaultSource is the default of Format.Source.
const DefaultSource = "outbox"

// Format is the format of an event's fields beside its payload. The zero Format is plain.
type Format struct {
	// CloudEvents writes them as CloudEvents 1.0 in binary mode.
	CloudEvents bool
	// Source is the source of the CloudEvents, a URI reference; DefaultSource when empty.
	Source string
}

// Attributes returns the attributes of a message. Those of a CloudEvent begin with prefix, which depends on the
// protocol ("ce-" over HTTP, "ce_" in Kafka). The content type of a CloudEvent is not among them: each protocol has
// its own place for it.
func (f Format) Attributes(message *outbox.Message, prefix string) []Attribute {
	if !f.CloudEvents {
		return Attributes(message)
	}
	source := cmp.Or(f.Source, DefaultSource)
	list := make([]Attribute, 0, 10+len(message.Headers))
	list = append(list,
		Attribute{prefix + "specversion", "1.0"},
		Attribute{prefix + "id", message.ID.String()},
		Attribute{prefix + "source", source},
		Attribute{prefix + "type", cmp.Or(message.Type, message.Topic)}, // never empty: a table without types has topics
		Attribute{prefix + "time", message.CreatedAt.UTC().Format(time.RFC3339Nano)})
	list = add(list, prefix+"subject", subject(message))
	list = add(list, prefix+"partitionkey", message.Key)
	list = add(list, prefix+"tenantid", tenant(message))
	list = add(list, prefix+"dedupekey", message.DedupeKey)
	// The extension for distributed tracing.
	list = add(list, prefix+"traceparent", message.Headers["traceparent"])
	list = add(list, prefix+"tracestate", message.Headers["tracestate"])
	return addHeaders(list, message)
}

func subject(message *outbox.Message) string {
	if message.AggregateType == "" || message.AggregateID == "" {
		return message.AggregateType + message.AggregateID
	}
	return message.AggregateType + "/" + message.AggregateID
}
