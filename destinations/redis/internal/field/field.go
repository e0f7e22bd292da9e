// Package field has the names of an entry's fields in a stream, beside the attributes of package
// wire: what the publisher writes and the consumer reads.
package field

const (
	// Payload is the event's payload.
	Payload = "payload"
	// Key is the event's key, if it has one.
	Key = "key"
	// ContentType is where a CloudEvent has its content type.
	ContentType = "content-type"
	// CloudEventsPrefix begins the attributes of a CloudEvent. It is Kafka's: CloudEvents has no
	// binding for Redis.
	CloudEventsPrefix = "ce_"
)
