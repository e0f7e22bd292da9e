package handlers

import (
	"errors"
	"strings"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume/inbox"
)

// failure is one handler's error.
type failure struct {
	name string
	err  error
}

// sum combines the errors of an event's handlers. As long as one of them may succeed, the event is tried again; it
// is dead when the others are done, one way or the other. Only a handler's own mark counts: if its mail server
// refuses connections, that must not look like an unavailable broker, for which every event waits.
func sum(failures []failure) error {
	texts := make([]string, len(failures))
	var retryable, away bool
	var elsewhere, untried error
	var asked time.Duration
	var reason outbox.Reason
	for i, f := range failures {
		texts[i] = "handler " + f.name + ": " + f.err.Error()
		var dead *outbox.TerminalError
		var down *outbox.UnavailableError
		var later *outbox.RetryAfterError
		switch {
		case errors.As(f.err, &dead):
			if reason = outbox.ReasonOf(f.err); len(failures) > 1 {
				reason = outbox.ReasonTerminal
			}
		case errors.As(f.err, &down):
			away = true
		case errors.Is(f.err, inbox.ErrInProgress):
			elsewhere = f.err
		case errors.Is(f.err, errBusy), errors.Is(f.err, ErrOverdue):
			untried = errors.Join(outbox.ErrNotAttempted, f.err)
		default:
			retryable = true
			if errors.As(f.err, &later) {
				asked = max(asked, later.Delay)
			}
		}
	}
	err := errors.New(strings.Join(texts, "; "))
	switch {
	case retryable && asked > 0:
		return outbox.RetryAfter(err, asked)
	case retryable:
		return err
	case elsewhere != nil:
		return &laterError{err, elsewhere}
	case untried != nil:
		return &laterError{err, untried}
	case away:
		return outbox.Unavailable(err)
	}
	return &outbox.TerminalError{Reason: reason, Err: err}
}

// laterError means that an event has not failed: an inbox says that it is being handled elsewhere, or a handler
// could not be called yet. Consumers and relays must see that, so that it does not become a dead letter meanwhile.
type laterError struct {
	error
	cause error
}

func (e *laterError) Unwrap() error { return e.cause }
