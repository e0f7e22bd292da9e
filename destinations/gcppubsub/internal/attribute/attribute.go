// Package attribute writes the fields of an event as attributes of a message, and reads them back.
package attribute

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/wire"
)

// The limits of the service.
const (
	most      = 100
	mostName  = 256
	mostValue = 1024
)

// binding is how CloudEvents are written.
var binding = wire.Binding{Prefix: "ce-", ContentType: "Content-Type"}

// reserved is how the names begin that the service keeps to itself.
const reserved = "goog"

// Encode makes the attributes of an event, and refuses those that the service would not take.
func Encode(format wire.Format, message *outbox.Message) (map[string]string, error) {
	list := binding.Attributes(format, message)
	attributes := make(map[string]string, len(list))
	for _, a := range list {
		attributes[a.Name] = a.Value
	}
	if len(attributes) > most {
		return nil, fmt.Errorf("it has %d attributes; a Pub/Sub message has at most %d", len(attributes), most)
	}
	for name, value := range attributes {
		if err := check(name, value); err != nil {
			return nil, err
		}
	}
	return attributes, nil
}

func check(name, value string) error {
	switch {
	case name == "":
		return errors.New("a header has no name, and cannot be a Pub/Sub attribute")
	case len(name) > mostName:
		return fmt.Errorf("the name of header %.40q... has %d bytes; a Pub/Sub attribute's has at most %d", name, len(name), mostName)
	case strings.HasPrefix(name, reserved):
		return fmt.Errorf("header %q begins with %s, which Pub/Sub keeps to itself", name, reserved)
	case len(value) > mostValue:
		return fmt.Errorf("the value of %q has %d bytes; a Pub/Sub attribute's has at most %d", name, len(value), mostValue)
	case !utf8.ValidString(name), !utf8.ValidString(value):
		return fmt.Errorf("%q is not valid UTF-8, and cannot be a Pub/Sub attribute", name)
	}
	return nil
}

// Decode is the reverse of Encode. It leaves out what the service keeps to itself: no dead letter could
// be published with it.
func Decode(all map[string]string, payload []byte) (outbox.Message, error) {
	attributes := maps.Clone(all)
	maps.DeleteFunc(attributes, func(name, _ string) bool { return strings.HasPrefix(name, reserved) })
	return binding.Decode(attributes, payload)
}
