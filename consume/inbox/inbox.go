// Package inbox makes a consumer handle each event once, although brokers deliver some twice.
//
// An event is marked as handled after its effect, never before: if the consumer is killed in between, the event
// must be unmarked when it is delivered again. Meanwhile a claim with a token, which ends by itself, keeps other
// consumers away:
//
//	Begin: claim, for the processing TTL -> the effect, the claim being renewed -> Finish: done
//
// Handle does all of it. A consumer may be killed at any point: the effect is never lost, and the event is never
// blocked for longer than the processing TTL. The effect happens twice only if the kill fell between the effect and
// Finish. If not even that may happen, and the effect is in PostgreSQL, use package pginbox: there the mark is part
// of the effect's own transaction.
package inbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Inbox remembers which events a consumer has handled. It is safe for concurrent use, also by many processes on one
// store. Every Inbox passes the suite of package inboxtest.
type Inbox interface {
	// Begin claims an event for one consumer, for the processing TTL. It returns ErrDone if the event was handled,
	// and ErrInProgress (an *InProgressError if the time left is known) if another claim has it. Any other error
	// means that the store could not be asked, or that Check rejects the arguments.
	Begin(ctx context.Context, consumer string, event uuid.UUID) (Claim, error)
}

// Claim is an event that is being handled. Each method proves by the claim's token that it is still ours, and
// returns ErrLost if it is not.
type Claim interface {
	// TTL returns how long the claim lasts after Begin or Renew; 0 if it has no end.
	TTL() time.Duration
	// Renew extends the claim to the TTL from now.
	Renew(ctx context.Context) error
	// Finish marks the event as handled. Calling it again is no error, because the first answer may have been lost.
	// If the claim has ended and nobody else has the event, Finish marks it all the same: the effect has happened.
	Finish(ctx context.Context) error
	// Release gives the event back as if it had not been claimed.
	Release(ctx context.Context) error
}

var (
	// ErrDone means that the event has been handled.
	ErrDone = errors.New("the event has been handled")
	// ErrInProgress means that another claim has the event: have it delivered again later.
	ErrInProgress = errors.New("the event is being handled elsewhere")
	// ErrLost means that a claim is no longer ours: it ended, and the event may be handled elsewhere.
	ErrLost = errors.New("the claim is lost")
	// ErrNotMarked means that the effect happened but the event could not be marked: another delivery would be
	// handled again. Acknowledge the delivery if no other copy of the event can be on its way.
	ErrNotMarked = errors.New("the event was handled, but not marked: it may be handled again")
)

// InProgressError is ErrInProgress with the time left.
type InProgressError struct {
	// Left is the time until the other claim ends, unless it is renewed.
	Left time.Duration
}

// Error returns how long the other claim has left.
func (e *InProgressError) Error() string {
	return fmt.Sprintf("%v; that claim ends in %s unless it is renewed", ErrInProgress, e.Left.Round(time.Millisecond))
}

// Unwrap makes errors.Is(err, ErrInProgress) true.
func (e *InProgressError) Unwrap() error { return ErrInProgress }
