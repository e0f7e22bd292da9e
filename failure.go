package outbox

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Reason says why an event is dead.
type Reason string

// The reasons for which an event is dead.
const (
	// ReasonMaxAttempts is the last allowed attempt having failed.
	ReasonMaxAttempts Reason = "max_attempts"
	// ReasonUnknownType is an event type the registry does not know.
	ReasonUnknownType Reason = "unknown_event_type"
	// ReasonInvalidPayload is a payload that is null or cannot be decoded.
	ReasonInvalidPayload Reason = "invalid_payload"
	// ReasonInvalidAggregate is an aggregate that is missing or not the type's.
	ReasonInvalidAggregate Reason = "invalid_aggregate"
	// ReasonInvalidRow is a row that cannot be read as an event.
	ReasonInvalidRow Reason = "invalid_row"
	// ReasonTooLarge is a message that is larger than the broker takes.
	ReasonTooLarge Reason = "payload_too_large"
	// ReasonRejected is a broker that said the message is invalid, or too large where it does
	// not tell the two apart.
	ReasonRejected Reason = "rejected"
	// ReasonTerminal is any other error wrapped as Terminal.
	ReasonTerminal Reason = "terminal"
)

// TerminalError is a failure that no retry can mend.
type TerminalError struct {
	// Reason says what kind it is.
	Reason Reason
	// Err is the failure.
	Err error
}

// Error is the failure's own text.
func (e *TerminalError) Error() string { return e.Err.Error() }

// Unwrap gives the failure.
func (e *TerminalError) Unwrap() error { return e.Err }

// Terminal marks an error as one that no retry can mend: the event is dead at once. A nil
// error stays nil.
func Terminal(err error) error { return terminal(ReasonTerminal, err) }

// TooLarge marks an error as a message that is larger than the broker will ever take.
func TooLarge(err error) error { return terminal(ReasonTooLarge, err) }

// Rejected marks an error as the broker's word that it will never take this message.
func Rejected(err error) error { return terminal(ReasonRejected, err) }

func terminal(reason Reason, err error) error {
	if err == nil {
		return nil
	}
	return &TerminalError{Reason: reason, Err: err}
}

// ReasonOf is the reason a terminal error carries.
func ReasonOf(err error) Reason {
	if dead := find[*TerminalError](err); dead != nil && dead.Reason != "" {
		return dead.Reason
	}
	return ReasonTerminal
}

// UnavailableError is a route that takes nothing for the moment: the destination, or one topic
// of it. It says nothing about the message.
type UnavailableError struct {
	// Err is the failure.
	Err error
	// Topic is set when only the message's topic is unavailable, and not the whole destination.
	Topic bool
	// Setting is set when waiting alone will not help: somebody has to create the topic, or
	// correct the credentials, the address or the path.
	Setting bool
	// Broken is set when the connection broke while the message was on its way: it may be what
	// broke it.
	Broken bool
}

// Error is the failure's own text.
func (e *UnavailableError) Error() string { return e.Err.Error() }

// Unwrap gives the failure.
func (e *UnavailableError) Unwrap() error { return e.Err }

// Unavailable marks an error as the destination's absence: it cannot be reached, hangs, or
// takes nothing from anybody. A nil error stays nil.
func Unavailable(err error) error { return unavailable(err, false, false) }

// Broken is Unavailable for a connection that broke while the message was on its way. A message to
// which that happens again and again, while others get through, is suspected of breaking it. A nil
// error stays nil.
func Broken(err error) error {
	if err == nil {
		return nil
	}
	return &UnavailableError{Err: err, Broken: true}
}

// TopicUnavailable is Unavailable for the message's topic alone.
func TopicUnavailable(err error) error { return unavailable(err, true, false) }

// Misconfigured marks an error as a wrong setting, such as refused credentials or an address
// that may not be used: the destination is unavailable until somebody corrects it. A nil error
// stays nil.
func Misconfigured(err error) error { return unavailable(err, false, true) }

// TopicMissing marks an error as a topic, stream, exchange or queue that does not exist, or
// that these credentials may not use: its events wait until it is there. A nil error stays nil.
func TopicMissing(err error) error { return unavailable(err, true, true) }

// IsMisconfigured reports whether an error is a wrong setting; see Misconfigured and TopicMissing.
func IsMisconfigured(err error) bool {
	away := find[*UnavailableError](err)
	return away != nil && away.Setting
}

func unavailable(err error, topic, setting bool) error {
	if err == nil {
		return nil
	}
	return &UnavailableError{Err: err, Topic: topic, Setting: setting}
}

// UnclearError is an answer that may be about the message or about the route.
type UnclearError struct {
	// Err is the failure.
	Err error
	// Overtaken is set when a message that was sent after this answer is known to have got through:
	// the destination is there, or was back by then.
	Overtaken bool
	// proven is set when the publisher got through with others and then gave this answer again.
	proven bool
}

// Error is the failure's own text.
func (e *UnclearError) Error() string { return e.Err.Error() }

// Unwrap gives the failure.
func (e *UnclearError) Unwrap() error { return e.Err }

// Unclear marks an error as an answer that may be about the message or about its topic, such as
// HTTP's 404. It is held against the topic, or the destination where the message has none, until
// another message of it gets through; only then it counts as an attempt. A nil error stays nil.
func Unclear(err error) error {
	if err == nil {
		return nil
	}
	return &UnclearError{Err: err}
}

// isOvertaken reports whether a message that was sent after an unclear answer got through.
func isOvertaken(err error) bool {
	unclear := find[*UnclearError](err)
	return unclear != nil && unclear.Overtaken
}

// isProven reports whether an unclear answer is known to be about the message.
func isProven(err error) bool {
	unclear := find[*UnclearError](err)
	return unclear != nil && unclear.proven
}

// maxErrorText is how many characters of an error are kept.
const maxErrorText = 1000

// ErrorText makes an error fit for a text column: valid UTF-8, no NUL, cut on a rune. Of an error
// that is a nil pointer, or whose Error panics, it says so.
func ErrorText(err error) string {
	text := textOf(err)
	if len(text) > maxErrorText*utf8.UTFMax {
		// Cut before cleaning: a broker's error can be megabytes long.
		text = text[:maxErrorText*utf8.UTFMax]
	}
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	count := 0
	for i := range text {
		if count++; count > maxErrorText {
			return text[:i]
		}
	}
	return text
}

// panicError is a publisher's panic. It may panic because of the message, or at every message.
func panicError(value any) error { return Unclear(fmt.Errorf("publisher panicked: %v", value)) }
