package cli

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/packfinderz/outbox/pgstream"
)

// errRedirected ends the relay to one destination because another comes next.
var errRedirected = errors.New("the destination was altered")

// redirection stops the running relay when its subscription's destination changes: what is being published is
// finished and settled, and nothing more is published there.
type redirection struct {
	// fixed is set when --to says where to publish.
	fixed bool
	log   *slog.Logger

	mu   sync.Mutex
	to   string // where the running relay publishes
	next *string
	stop context.CancelCauseFunc
}

func (r *redirection) begin(ctx context.Context, to string) (running context.Context, stop func()) {
	running, cancel := context.WithCancelCause(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to, r.next, r.stop = to, nil, cancel
	return running, func() { cancel(nil) }
}

// end returns the next destination, if the relay was stopped for one.
func (r *redirection) end() (next string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stop = nil
	if r.next == nil {
		return "", false
	}
	return *r.next, true
}

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
