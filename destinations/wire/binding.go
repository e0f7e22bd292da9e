package wire

import "github.com/packfinderz/outbox"

// Binding says how a protocol carries CloudEvents. Plain events are the same everywhere.
type Binding struct {
	// Prefix begins the attributes of a CloudEvent: "ce-" over HTTP, "ce_" in Kafka.
	Prefix string
	// ContentType is the attribute with the content type of a CloudEvent.
	ContentType string
}

// Attributes returns the attributes of a message, including the content type of a CloudEvent. A header with the
// name of a field is left out.
func (b Binding) Attributes(format Format, message *outbox.Message) []Attribute {
	list := format.Attributes(message, b.Prefix)
	if !format.CloudEvents || message.ContentType == "" {
		return list
	}
	for i := range list {
		if list[i].Name == b.ContentType {
			list[i].Value = message.ContentType
			return list
		}
	}
	return append(list, Attribute{b.ContentType, message.ContentType})
}
