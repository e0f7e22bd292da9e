package handlers

import (
	"errors"
	"strings"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume/inbox"
)

// failure is what one handler answered.
type failure struct {
	name string
	err  error
}

// sum makes one error of what an event's handlers answered. As long as one of them may
// succeed, the event is tried again; it is dead when the others are through, one way or the
// other. Only what a handler marks itself counts: that its mail server refuses connections
// must not look like a broker that is away, for which every event waits.
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

// laterError is an event that has not failed: an inbox says that it is being handled elsewhere, or a handler could not be called
// yet. Consumers and relays have to see that: it must not become a dead letter meanwhile.
type laterError struct {
	error
	cause error
}

func (e *laterError) Unwrap() error { return e.cause }
