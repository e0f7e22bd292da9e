// Package inbox makes a consumer handle each event once, although brokers deliver some
// twice.
//
// An event is marked as handled after its effect, never before: a consumer that is killed in
// between must find the event unmarked when it is delivered again. What keeps two
// consumers apart meanwhile is a claim with a token, which ends by itself:
//
//	Begin: claim, for the processing TTL -> the effect, the claim being renewed -> Finish: done
//
// Handle does all of it. A consumer may be killed at any point: the effect is never lost, the
// event is never blocked for longer than the processing TTL, and the effect happens twice
// only if the kill fell between the effect and Finish. Where not even that may happen, and
// the effect is in PostgreSQL, use package pginbox instead: there the mark is part of the
// effect's own transaction.
package inbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Inbox remembers which events a consumer has handled. It is safe for concurrent use, also
// by many processes on one store. Package inboxtest has the suite that every Inbox passes.
type Inbox interface {
	// Begin takes an event for one consumer, for the processing TTL. It answers ErrDone when
	// the event was handled and ErrInProgress (an *InProgressError where the time left is known)
	// when another claim has it. A store that cannot be asked is any other error: never a
	// claim, and never ErrDone. Begin refuses what Check refuses.
	Begin(ctx context.Context, consumer string, event uuid.UUID) (Claim, error)
}

// Claim is an event that is being handled. Each method proves by the claim's token that it
// is still ours, and answers ErrLost when it is not.
type Claim interface {
	// TTL is how long the claim lasts after Begin or Renew, or 0 if it has no end.
	TTL() time.Duration
	// Renew makes the claim last for the TTL from now on.
	Renew(ctx context.Context) error
	// Finish marks the event as handled. To do it again is no error, because the first
	// answer may have been lost. If the claim has ended and nobody has the event, it is marked all
	// the same: the effect has happened.
	Finish(ctx context.Context) error
	// Release gives the event back, as if it had not been taken.
	Release(ctx context.Context) error
}

var (
	// ErrDone means that the event has been handled.
	ErrDone = errors.New("the event has been handled")
	// ErrInProgress means that another claim has the event: have it delivered again later.
	ErrInProgress = errors.New("the event is being handled elsewhere")
	// ErrLost means that a claim is no longer ours: it ended, and the event may be handled
	// elsewhere.
	ErrLost = errors.New("the claim is lost")
	// ErrNotMarked means that the effect happened and the event could not be marked: it would be
	// handled again if it were delivered again. To acknowledge the delivery is right, if no
	// other copy of the event can be on its way.
	ErrNotMarked = errors.New("the event was handled, but not marked: it may be handled again")
)

// InProgressError is ErrInProgress with the time left.
type InProgressError struct {
	// Left is when the other claim ends, unless it is renewed.
	Left time.Duration
}

// Error says how long the other claim has left.
func (e *InProgressError) Error() string {
	return fmt.Sprintf("%v; that claim ends in %s unless it is renewed", ErrInProgress, e.Left.Round(time.Millisecond))
}

// Unwrap makes errors.Is(err, ErrInProgress) hold.
func (e *InProgressError) Unwrap() error { return ErrInProgress }
