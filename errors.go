package outbox

import (
	"errors"
	"fmt"
)

// ErrInvalidEvent matches, with errors.Is, every event that was refused before
// the database was touched. The error itself is an *EventError.
var ErrInvalidEvent = errors.New("invalid event")

// ErrInvalidLayout matches every layout that was refused.
var ErrInvalidLayout = errors.New("invalid layout")

// ErrNoTopic is what a publisher that needs a topic answers for an event without one. Such events wait as if
// they had a topic that is missing: some tables have no topics, and the relay may have to be told one.
var ErrNoTopic = TopicMissing(errors.New("the event has no topic: give it one, or set --topic-default"))

// EventError says which event was refused at emit, and why. The caller's
// transaction has not been touched and can go on.
type EventError struct {
	// Index is the event's place among those emitted together, from 0.
	Index int
	// Field is the field that was refused, such as "payload".
	Field string
	// Problem says what is wrong with it and what to do.
	Problem string
}

// Error is one line: the event's place, the field and the problem.
func (e *EventError) Error() string {
	return fmt.Sprintf("outbox: event %d: %s %s", e.Index, e.Field, e.Problem)
}

// Unwrap makes errors.Is(err, ErrInvalidEvent) hold.
func (e *EventError) Unwrap() error { return ErrInvalidEvent }
