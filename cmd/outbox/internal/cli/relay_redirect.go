package cli

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/packfinderz/outbox/pgstream"
)

// errRedirected ends the relay to one destination because another one comes next.
var errRedirected = errors.New("the destination was altered")

// redirection ends the relay that runs when the destination of its subscription is altered: what is
// being published is finished and settled, nothing more is published there.
type redirection struct {
	// fixed is set when --to says where to publish.
	fixed bool
	log   *slog.Logger

	mu   sync.Mutex
	to   string // where the relay publishes that runs
	next *string
	stop context.CancelCauseFunc
}

// begin is the start of a relay to a destination.
func (r *redirection) begin(ctx context.Context, to string) (running context.Context, stop func()) {
	running, cancel := context.WithCancelCause(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to, r.next, r.stop = to, nil, cancel
	return running, func() { cancel(nil) }
}

// end returns where to go on, if the relay was ended for that.
func (r *redirection) end() (next string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stop = nil
	if r.next == nil {
		return "", false
	}
	return *r.next, true
}

// changed is told of every change of the subscription.
func (r *redirection) changed(was, is pgstream.Subscription) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.fixed:
		if was.Destination != is.Destination {
			r.log.Warn("the subscription's destination was altered; this relay goes on to the one of --to")
		}
	case is.Destination != r.to && r.stop != nil:
		r.next = &is.Destination
		r.stop(errRedirected)
	}
}
