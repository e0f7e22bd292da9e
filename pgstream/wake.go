package pgstream

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/wake"
)

// Notifier tells relays in other processes that something was committed. It sends after the commit, on a connection of
// the pool: a notification inside the business transaction would cost up to half of the peak rate.
type Notifier struct{ inner *wake.Notifier }

// NewNotifier starts a notifier for a stream. Use its Notify as EmitConfig.Nudge, and Close it in the end.
func NewNotifier(pool *pgxpool.Pool, stream Stream) (*Notifier, error) {
	if err := stream.Validate(); err != nil {
		return nil, err
	}
	return &Notifier{inner: wake.NewNotifier(pool, stream.table("outbox_stream"))}, nil
}

// Notify sends a notification. It returns at once; calls within ten milliseconds become one notification. One that cannot
// be sent is dropped: relays poll.
func (n *Notifier) Notify() { n.inner.Notify() }

// Close stops the notifier.
func (n *Notifier) Close() { n.inner.Close() }

// Wake notifies the relays of a stream once. Long-lived programs use a Notifier.
func Wake(ctx context.Context, db Querier, stream Stream) error {
	return stream.wake(ctx, db, "")
}

// What a notification is about. Without it relays notice by themselves: parked events within ten seconds, a changed
// subscription with their next heartbeat.
const (
	aboutParked  = "parked"  // a person made parked events due
	aboutChanged = "changed" // a subscription was altered or dropped
)

// wake notifies the relays of the stream; in a transaction, when it is committed.
func (s Stream) wake(ctx context.Context, db wake.Execer, about string) error {
	return wake.Send(ctx, db, s.table("outbox_stream"), about)
}

// Listen calls wakeUp for every notification until ctx ends; see outbox.Listener.
func (s *Store) Listen(ctx context.Context, wakeUp func()) error {
	return wake.Listen(ctx, s.given, s.stream.table("outbox_stream"), func(about string) {
		s.mu.Lock()
		if about == aboutParked || about == wake.Missed {
			s.lookAt = time.Time{}
		}
		if about == aboutChanged || about == wake.Missed {
			s.tendAt = time.Time{}
		}
		s.mu.Unlock()
		wakeUp()
	})
}

var (
	_ outbox.Listener = (*Store)(nil)
	_ outbox.Leaver   = (*Store)(nil)
	_ outbox.Idler    = (*Store)(nil)
)
