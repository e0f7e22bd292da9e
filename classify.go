package outbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"unicode/utf8"
)

// Class is what a failed publish means for the event, and for the others.
type Class int

// The classes of failures.
const (
	// ClassRetryable means that this message failed now and may succeed later: the attempt is
	// counted.
	ClassRetryable Class = iota
	// ClassTerminal means that this message can never succeed: it is dead at once.
	ClassTerminal
	// ClassUnavailable means that the broker cannot be reached: it says nothing about the message, no
	// attempt is counted, and the relay waits for the broker.
	ClassUnavailable
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

// UnavailableError is a broker that cannot be reached.
type UnavailableError struct {
	// Err is the failure.
	Err error
}

// Error is the failure's own text.
func (e *UnavailableError) Error() string { return e.Err.Error() }

// Unwrap gives the failure.
func (e *UnavailableError) Unwrap() error { return e.Err }

// Unavailable marks an error as the broker's absence (connection refused, credentials
// expired) rather than a failure of one message. A nil error stays nil.
func Unavailable(err error) error {
	if err == nil {
		return nil
	}
	return &UnavailableError{Err: err}
}

// Classify decides what a publish error means. It is the one place that does.
//
// What the publisher said with Terminal or Unavailable counts. A connection that could
// not be made or broke is unavailability; a timeout is not, because one slow message
// must not hold up the rest forever, and neither is an ordinary error of a handler.
func Classify(err error) Class {
	var dead *TerminalError
	var down *UnavailableError
	switch {
	case errors.As(err, &dead):
		return ClassTerminal
	case errors.As(err, &down):
		return ClassUnavailable
	case errors.Is(err, context.DeadlineExceeded):
		return ClassRetryable
	case isConnectionFailure(err):
		return ClassUnavailable
	}
	return ClassRetryable
}

func isConnectionFailure(err error) bool {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return true
	}
	var dns *net.DNSError
	return errors.As(err, &dns) ||
		errors.Is(err, syscall.ECONNREFUSED) ||
		errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, net.ErrClosed) ||
		errors.Is(err, io.ErrUnexpectedEOF)
}

// ReasonOf is the reason a terminal error carries.
func ReasonOf(err error) Reason {
	var dead *TerminalError
	if errors.As(err, &dead) && dead.Reason != "" {
		return dead.Reason
	}
	return ReasonTerminal
}

// maxErrorText is how many characters of an error are kept.
const maxErrorText = 1000

// ErrorText makes an error fit for a text column: valid UTF-8, no NUL, cut on a rune.
func ErrorText(err error) string {
	text := err.Error()
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

// panicError is a publisher's panic, as the failure of a message.
func panicError(value any) error { return fmt.Errorf("publisher panicked: %v", value) }
