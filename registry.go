package outbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Route describes one event type of a Registry.
type Route struct {
	// Topic is where events of the type are published; empty to use the event's own topic.
	Topic string
	// AggregateType is the aggregate type that events of the type must have; empty to accept any, or none.
	AggregateType string
	// Decode checks the payload; nil for no check. See DecodeJSON.
	Decode func(payload []byte) error
	// Check, if not nil, checks the whole message after its aggregate and payload have passed, for example that an
	// envelope matches its event. The event is dead with the Reason of a TerminalError, or with
	// ReasonInvalidPayload for any other error.
	Check func(message *Message) error
}

// Registry maps event types to their topics and payloads. It is plain Go, a map written out in code. An event whose
// type is not in it is not published.
type Registry map[string]Route

// DecodeJSON returns a Decode function that decodes the payload into a T and rejects unknown fields. If check is
// not nil, it then checks the value.
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

// Check checks a message against its route and sets its topic. The relay calls it before it publishes, a consumer
// before it handles. The error is terminal: a stored event does not change by waiting.
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

func (r Route) decode(payload []byte) error {
	if r.Decode == nil {
		return nil
	}
	return recovered(func() error { return r.Decode(payload) })
}

func (r Route) check(message *Message) error {
	if r.Check == nil {
		return nil
	}
	return recovered(func() error { return r.Check(message) })
}

// recovered turns a panic of a check into an error: the same message would panic every time.
func recovered(check func() error) (err error) {
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
