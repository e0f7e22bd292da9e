// Package layouttest has what the tests of several packages need to know of the layouts.
package layouttest

import (
	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
)

// Event is a valid event of a shipped layout, or of the stream.
func Event(layout string) outbox.Event {
	event := outbox.Event{Payload: []byte(`{"amount": 12}`)}
	switch layout {
	case "packfinderz":
		event.Type, event.AggregateType, event.AggregateID = "order_created", "vendor_order", uuid.NewString()
	case "doorito":
		event.Type, event.AggregateType, event.AggregateID = "file.stored", "UploadFile", "42"
	case "modkit":
		event.Namespace, event.Topic = "mini-chat", "usage"
	case "standard":
		event.Topic, event.Type = "orders", "order_created"
	}
	return event
}
