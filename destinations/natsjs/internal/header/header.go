// Package header has the names of headers of a message in NATS, beside those of package wire:
// what the publisher writes and the consumer reads.
package header

import (
	"strings"

	"github.com/packfinderz/outbox/destinations/wire"
)

// Binding is how CloudEvents are written.
var Binding = wire.Binding{Prefix: "ce-", ContentType: "content-type"}

// OwnPrefix begins the headers by which the server is told what to do with a message.
const OwnPrefix = "Nats-"

// IsOwn reports whether a header is the server's.
func IsOwn(name string) bool {
	return len(name) >= len(OwnPrefix) && strings.EqualFold(name[:len(OwnPrefix)], OwnPrefix)
}
