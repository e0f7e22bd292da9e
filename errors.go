package outbox

import (
	"errors"
	"fmt"
)

// ErrInvalidEvent matches, with errors.Is, every event that is refused before the database is touched. The error
// itself is an *EventError.
var ErrInvalidEvent = errors.New("invalid event")

// ErrInvalidLayout matches, with errors.Is, every layout that is refused.
var ErrInvalidLayout = errors.New("invalid layout")

// ErrNoTopic is the answer of a publisher that needs a topic to an event without one. The event waits as if its
// topic were missing: some tables have no topic column, and the relay may lack a default.
var ErrNoTopic = TopicMissing(errors.New("the event has no topic: give it one, or set --topic-default"))

// EventError says which event emit refused, and why. The caller's transaction is untouched and can go on.
type EventError struct {
	// Index is the event's position among those emitted together, from 0.
	Index int
	// Field is the refused field, such as "payload".
	Field string
	// Problem says what is wrong with it and what to do.
	Problem string
}

// Error returns one line: the event's position, the field and the problem.
func (e *EventError) Error() string {
	return fmt.Sprintf("outbox: event %d: %s %s", e.Index, e.Field, e.Problem)
}

// Unwrap makes errors.Is(err, ErrInvalidEvent) true.
func (e *EventError) Unwrap() error { return ErrInvalidEvent }
