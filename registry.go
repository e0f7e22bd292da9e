package outbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Route is what a registry knows of one event type.
type Route struct {
	// Topic is where events of the type are published; empty for the event's own.
	Topic string
	// AggregateType is the aggregate the type belongs to; empty for any, or none.
	AggregateType string
	// Decode checks that a payload is what the type promises; nil for no check. See DecodeJSON.
	Decode func(payload []byte) error
	// Check, if not nil, looks at the whole message once its aggregate and payload are right: an
	// envelope must be that of its event, say. What it refuses has the reason of its error, if that
	// is a TerminalError, and an invalid payload otherwise.
	Check func(message *Message) error
}

// Registry is the one place that maps an event type to its topic and payload. It is
// plain Go, a map written out in code: what is not in it is not published.
type Registry map[string]Route

// DecodeJSON is a Decode that reads the payload into a T and refuses fields it does not
// have. check, if not nil, has the last word.
func DecodeJSON[T any](check func(T) error) func([]byte) error {
	return func(payload []byte) error {
		var value T
		decoder := json.NewDecoder(bytes.NewReader(payload))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&value); err != nil {
			return err
		}
		if check == nil {
			return nil
		}
		return check(value)
	}
}

// Check holds a message against its route and fills in its topic. The relay does so before it
// publishes, and a consumer before it handles. The error is terminal: a stored event does not
// change by waiting.
func (r Registry) Check(message *Message) error {
	route, known := r[message.Type]
	if !known {
		return terminal(ReasonUnknownType, fmt.Errorf("event type %q is not in the registry", message.Type))
	}
	if route.AggregateType != "" && (message.AggregateID == "" || message.AggregateType == "") {
		return terminal(ReasonInvalidAggregate, errors.New("the aggregate type or id is missing"))
	}
	if route.AggregateType != "" && message.AggregateType != route.AggregateType {
		return terminal(ReasonInvalidAggregate, fmt.Errorf("aggregate type %q does not belong to event type %q, which has %q",
			message.AggregateType, message.Type, route.AggregateType))
	}
	if isNull(message.Payload) {
		return terminal(ReasonInvalidPayload, errors.New("the payload is null"))
	}
	if err := route.decode(message.Payload); err != nil {
		return terminal(ReasonInvalidPayload, fmt.Errorf("the payload is not that of event type %q: %w", message.Type, err))
	}
	if err := route.check(message); err != nil {
		if Classify(err) == ClassTerminal {
			return err
		}
		return terminal(ReasonInvalidPayload, err)
	}
	if route.Topic != "" {
		message.Topic = route.Topic
	}
	return nil
}

// decode checks the payload.
func (r Route) decode(payload []byte) error {
	if r.Decode == nil {
		return nil
	}
	return calmly(func() error { return r.Decode(payload) })
}

// check looks at the whole message.
func (r Route) check(message *Message) error {
	if r.Check == nil {
		return nil
	}
	return calmly(func() error { return r.Check(message) })
}

// calmly turns a panic of a check into a refusal: the message would make it panic every time.
func calmly(check func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("the check panicked: %v", value)
		}
	}()
	return check()
}

func isNull(doc []byte) bool {
	trimmed := bytes.TrimSpace(doc)
	return len(trimmed) == 0 || string(trimmed) == "null"
}
