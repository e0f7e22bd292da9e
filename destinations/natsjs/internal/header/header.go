// Package header has the names of headers of a message in NATS, beside those of package wire:
// what the publisher writes and the consumer reads.
package header

import "strings"

const (
	// CloudEventsPrefix begins the attributes of a CloudEvent.
	CloudEventsPrefix = "ce-"
	// ContentType is where a CloudEvent has its content type.
	ContentType = "content-type"
	// OwnPrefix is of headers by which the server is told what to do with a message: roll a
	// subject up, say.
	OwnPrefix = "Nats-"
)

// IsOwn reports whether a header is the server's.
func IsOwn(name string) bool {
	return len(name) >= len(OwnPrefix) && strings.EqualFold(name[:len(OwnPrefix)], OwnPrefix)
}
