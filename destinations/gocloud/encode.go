package gocloud

import (
	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/wire"
)

// attributes are what travels beside the payload. There is no binding of CloudEvents to
// these services; the names are those of HTTP, which the other bindings follow.
func attributes(format wire.Format, message *outbox.Message) map[string]string {
	list := wire.Binding{Prefix: "ce-", ContentType: "content-type"}.Attributes(format, message)
	attributes := make(map[string]string, len(list))
	for _, a := range list {
		attributes[a.Name] = a.Value
	}
	return attributes
}
