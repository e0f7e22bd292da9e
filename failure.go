package outbox

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Reason says why an event is dead.
type Reason string

// The reasons for a dead event.
const (
	// ReasonMaxAttempts means that the last allowed attempt failed.
	ReasonMaxAttempts Reason = "max_attempts"
	// ReasonUnknownType means that the registry does not know the event type.
	ReasonUnknownType Reason = "unknown_event_type"
	// ReasonInvalidPayload means that the payload is null or cannot be decoded.
	ReasonInvalidPayload Reason = "invalid_payload"
	// ReasonInvalidAggregate means that the aggregate is missing or does not belong to the event type.
	ReasonInvalidAggregate Reason = "invalid_aggregate"
	// ReasonInvalidRow means that the row cannot be read as an event.
	ReasonInvalidRow Reason = "invalid_row"
	// ReasonTooLarge means that the message is larger than the broker accepts.
	ReasonTooLarge Reason = "payload_too_large"
	// ReasonRejected means that the broker called the message invalid, or invalid or too large if it does not tell
	// the two apart.
	ReasonRejected Reason = "rejected"
	// ReasonTerminal means any other error marked with Terminal.
	ReasonTerminal Reason = "terminal"
)

// TerminalError is a failure that no retry can fix.
type TerminalError struct {
	// Reason says why the event is dead.
	Reason Reason
	// Err is the failure.
	Err error
}

// Error is the failure's own text.
func (e *TerminalError) Error() string { return e.Err.Error() }

// Unwrap gives the failure.
func (e *TerminalError) Unwrap() error { return e.Err }

// Terminal marks an error as one that no retry can fix: the event is dead at once. A nil error stays nil.
func Terminal(err error) error { return terminal(ReasonTerminal, err) }

// TooLarge marks an error as terminal: the message is larger than the broker ever accepts. A nil error stays nil.
func TooLarge(err error) error { return terminal(ReasonTooLarge, err) }

// Rejected marks an error as terminal: the broker says that it will never accept this message. A nil error stays
// nil.
func Rejected(err error) error { return terminal(ReasonRejected, err) }

func terminal(reason Reason, err error) error {
	if err == nil {
		return nil
	}
	return &TerminalError{Reason: reason, Err: err}
}

// ReasonOf returns the reason of a terminal error.
func ReasonOf(err error) Reason {
	if dead := find[*TerminalError](err); dead != nil && dead.Reason != "" {
		return dead.Reason
	}
	return ReasonTerminal
}

// UnavailableError means that a route, the destination or one of its topics, accepts nothing for now. It says
// nothing about the message.
type UnavailableError struct {
	// Err is the failure.
	Err error
	// Topic is set if only the message's topic is unavailable, not the whole destination.
	Topic bool
	// Setting is set if waiting alone will not help: a person must create the topic, or correct the credentials,
	// the address or the path.
	Setting bool
	// Broken is set if the connection broke while the message was being sent: the message may have caused it.
	Broken bool
}

// Error is the failure's own text.
func (e *UnavailableError) Error() string { return e.Err.Error() }

// Unwrap gives the failure.
func (e *UnavailableError) Unwrap() error { return e.Err }

// Unavailable marks an error as an outage: the destination cannot be reached, hangs, or accepts nothing. A nil
// error stays nil.
func Unavailable(err error) error { return unavailable(UnavailableError{Err: err}) }

// Broken is Unavailable for a connection that broke while the message was being sent. A message that repeatedly
// breaks the connection, while others get through, becomes a suspect. A nil error stays nil.
func Broken(err error) error { return unavailable(UnavailableError{Err: err, Broken: true}) }

// TopicUnavailable is Unavailable for the message's topic only.
func TopicUnavailable(err error) error { return unavailable(UnavailableError{Err: err, Topic: true}) }

// Misconfigured marks an error as a wrong setting, such as refused credentials or a forbidden address: the
// destination is unavailable until a person corrects it. A nil error stays nil.
func Misconfigured(err error) error { return unavailable(UnavailableError{Err: err, Setting: true}) }

// TopicMissing marks an error as a topic, stream, exchange or queue that does not exist or that these credentials
// may not use: its events wait until it is available. A nil error stays nil.
func TopicMissing(err error) error {
	return unavailable(UnavailableError{Err: err, Topic: true, Setting: true})
}

// IsMisconfigured reports whether an error is a wrong setting; see Misconfigured and TopicMissing.
func IsMisconfigured(err error) bool {
	away := find[*UnavailableError](err)
	return away != nil && away.Setting
}

func unavailable(e UnavailableError) error {
	if e.Err == nil {
		return nil
	}
	return &e
}

// UnclearError is an answer that may concern the message or the route.
type UnclearError struct {
	// Err is the failure.
	Err error
	// Overtaken is set if a message sent after this answer got through: the destination was up, or back by then.
	Overtaken bool
	// proven is set if the publisher delivered other messages and then gave this answer again.
	proven bool
}

// Error is the failure's own text.
func (e *UnclearError) Error() string { return e.Err.Error() }

// Unwrap gives the failure.
func (e *UnclearError) Unwrap() error { return e.Err }

// Unclear marks an error as an answer that may concern the message or its topic, such as HTTP 404. It is held
// against the topic, or the destination for a message without one, until another message gets through; only then
// does it count as an attempt. A nil error stays nil.
func Unclear(err error) error {
	if err == nil {
		return nil
	}
	return &UnclearError{Err: err}
}

// isOvertaken reports whether a message sent after an unclear answer got through.
func isOvertaken(err error) bool {
	unclear := find[*UnclearError](err)
	return unclear != nil && unclear.Overtaken
}

// isProven reports whether an unclear answer is known to concern the message.
func isProven(err error) bool {
	unclear := find[*UnclearError](err)
	return unclear != nil && unclear.proven
}

// maxErrorText is how many characters of an error are kept.
const maxErrorText = 1000

// ErrorText returns an error's text, ready for a text column: valid UTF-8, no NUL, at most 1,000 characters. It
// describes an error that is a nil pointer or whose Error panics.
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

// panicError is a publisher's panic. Either this message causes it, or every message does.
func panicError(value any) error { return Unclear(fmt.Errorf("publisher panicked: %v", value)) }
