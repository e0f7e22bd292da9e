package consume

import (
	"errors"
	"fmt"

	"github.com/packfinderz/outbox"
)

// Unknown says what to do with an event whose type this consumer does not know. Such events are normal on a topic
// that several consumers share. There is no default: ignoring them loses the events of a forgotten handler, and
// keeping them fills the dead letters of a consumer that wants one type of many.
type Unknown string

const (
	// IgnoreUnknown acknowledges it unhandled: the topic is shared, and the event is for others.
	IgnoreUnknown Unknown = "ignore"
	// DeadLetterUnknown makes it a dead letter at once: no such event belongs on the topic.
	DeadLetterUnknown Unknown = "dead_letter"
	// RetryUnknown delivers it again, as after a failure: its handler is still being rolled out.
	RetryUnknown Unknown = "retry"
)

// Typed is a publisher that knows its event types, as *handlers.Publisher does.
type Typed interface {
	// Handles reports whether it handles an event type.
	Handles(eventType string) bool
	// HandlesAll reports whether it handles every event type.
	HandlesAll() bool
}

func (c Config) validateUnknown() error {
	switch c.Unknown {
	case IgnoreUnknown, RetryUnknown:
		return nil
	case DeadLetterUnknown:
		if c.DeadLetters == nil {
			return errors.New("consume: Config.Unknown is DeadLetterUnknown; it needs Config.DeadLetters")
		}
		return nil
	case "":
		if typed, ok := c.Handlers.(Typed); ok && typed.HandlesAll() && c.Registry == nil {
			return nil
		}
		return errors.New("consume: Config.Unknown is missing: what becomes of an event type without a handler? " +
			"Choose IgnoreUnknown, DeadLetterUnknown or RetryUnknown, or register a handler for all other types")
	}
	return fmt.Errorf("consume: Config.Unknown is %q; it must be IgnoreUnknown, DeadLetterUnknown or RetryUnknown", c.Unknown)
}

// checkType rejects an event type without a handler.
func (c Config) checkType(eventType string) error {
	if typed, ok := c.Handlers.(Typed); ok && !typed.Handles(eventType) {
		return &outbox.TerminalError{Reason: outbox.ReasonUnknownType, Err: fmt.Errorf("no handler is registered for event type %q", eventType)}
	}
	return nil
}

// isUnknown reports whether an event failed because its type is unknown.
func isUnknown(err error) bool {
	return outbox.Classify(err) == outbox.ClassTerminal && outbox.ReasonOf(err) == outbox.ReasonUnknownType
}
