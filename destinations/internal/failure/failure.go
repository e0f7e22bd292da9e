// Package failure answers the questions that every destination asks about an error.
package failure

import (
	"errors"
	"slices"

	"github.com/packfinderz/outbox"
)

// Is reports whether err is, or wraps, an error of type E.
func Is[E error](err error) bool {
	var found E
	return errors.As(err, &found)
}

// IsAny is errors.Is for several targets.
func IsAny[E error](err error, targets ...E) bool {
	return slices.ContainsFunc(targets, func(target E) bool { return errors.Is(err, target) })
}

// OfTopic reports whether an error makes one topic unavailable and not the whole destination.
func OfTopic(err error) bool {
	var away *outbox.UnavailableError
	return errors.As(err, &away) && away.Topic
}

// MayBeOne reports whether one message of a request may be why all of it failed.
func MayBeOne(err error) bool {
	return outbox.Classify(err) == outbox.ClassTerminal || Is[*outbox.UnclearError](err)
}
