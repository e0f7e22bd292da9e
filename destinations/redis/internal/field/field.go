// Package field has the names of an entry's fields in a stream, beside the attributes of package
// wire: what the publisher writes and the consumer reads.
package field

import "github.com/packfinderz/outbox/destinations/wire"

// Binding is how CloudEvents are written. It is Kafka's: CloudEvents has none for Redis.
var Binding = wire.Binding{Prefix: "ce_", ContentType: "content-type"}

const (
	// Payload is the event's payload.
	Payload = "payload"
	// Key is the event's key, if it has one.
	Key = "key"
)
