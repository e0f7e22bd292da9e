package handlers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"time"

	"github.com/packfinderz/outbox"
)

var (
	// ErrOverdue is returned for an event whose handler was not called because too many earlier calls still run
	// after their timeout. It counts no attempt: it comes with outbox.ErrNotAttempted.
	ErrOverdue = errors.New("too many of its calls have not ended at their timeout")
	// errBusy counts none either.
	errBusy = errors.New("it still runs from an earlier attempt")
	errGone = errors.New("it ended its goroutine without returning")
	// errStillRunning is a handler that ignores the end of its context.
	errStillRunning = errors.New("it still runs")
)

// heeding is how long a handler whose time is up has to return its result.
const heeding = 250 * time.Millisecond

// run calls one handler, unless it is done with the message or still running, and waits until its timeout. A
// handler that ignores the end of its context goes on: its result is remembered, and until then it is not given the
// message again.
func (p *Publisher) run(ctx context.Context, h *handler, message *outbox.Message) error {
	if ended, err := p.memory.begin(message.ID, h); ended {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, p.config.Timeout)
	// A copy: the handler may change it, and keep it for longer than this attempt.
	given := *message
	given.Payload, given.Headers = bytes.Clone(message.Payload), maps.Clone(message.Headers)
	answer := make(chan error, 1)
	go func() {
		err := errGone
		defer func() {
			if value := recover(); value != nil {
				p.config.Logger.Error("a handler panicked", "handler", h.name, "event_id", given.ID, "event_type", given.Type,
					"panic", fmt.Sprint(value), "stack", string(debug.Stack()))
				err = fmt.Errorf("it panicked: %v", value)
			}
			p.memory.end(given.ID, h, err)
			answer <- err
			cancel()
		}()
		if err = h.call(bounded, given); err != nil {
			// An error whose methods panic, such as a nil pointer, does so here, where it is caught.
			_, _ = err.Error(), errors.Is(err, errGone)
		}
	}()
	select {
	case err := <-answer:
		return err
	case <-bounded.Done():
	}
	if ctx.Err() == nil {
		// A handler that heeds its context ends now, and knows best why: downstream may be unavailable.
		select {
		case err := <-answer:
			return p.late(err)
		case <-time.After(heeding):
		case <-ctx.Done():
		}
	}
	if !p.memory.leave(message.ID, h) {
		return <-answer // it has just ended
	}
	if errors.Is(bounded.Err(), context.Canceled) {
		return fmt.Errorf("it was not waited for: %w", bounded.Err())
	}
	return p.late(errStillRunning)
}

// late is the error of a handler whose time is up.
func (p *Publisher) late(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("it did not end within %s: %w", p.config.Timeout, err)
}
