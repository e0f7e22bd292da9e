package pgstore

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/sqlname"
	"github.com/packfinderz/outbox/internal/wake"
	"github.com/packfinderz/outbox/layouts"
)

// Notifier tells relays in other processes that something was committed. It sends after the commit, on a connection of
// the pool: a notification inside the business transaction would cost up to half of the peak rate.
type Notifier struct{ inner *wake.Notifier }

// NewNotifier starts a notifier for a layout's table. Use its Notify as EmitConfig.Nudge, and Close it in the end.
func NewNotifier(pool *pgxpool.Pool, layout layouts.Layout) (*Notifier, error) {
	if err := layout.Validate(); err != nil {
		return nil, err
	}
	return &Notifier{inner: wake.NewNotifier(pool, sqlname.Qualified(layout.Schema, layout.Table))}, nil
}

// Notify sends a notification. It returns at once; calls within ten milliseconds become one notification. One that cannot
// be sent is dropped: relays poll.
func (n *Notifier) Notify() { n.inner.Notify() }

// Close stops the notifier.
func (n *Notifier) Close() { n.inner.Close() }

// Wake notifies the relays of a layout's table once. Long-lived programs use a Notifier.
func Wake(ctx context.Context, db Querier, layout layouts.Layout) error {
	return wake.Send(ctx, db, sqlname.Qualified(layout.Schema, layout.Table), "")
}

// Listen calls wakeUp for every notification until ctx ends; see outbox.Listener.
func (s *Store) Listen(ctx context.Context, wakeUp func()) error {
	if s.given == nil {
		return errNoListening
	}
	return wake.Listen(ctx, s.given, s.layout.Qualified(s.layout.Table), func(string) { wakeUp() })
}

// errNoListening is returned by a store on database/sql: a listener needs a connection of its own.
var errNoListening = errors.New("outbox: a store on database/sql hears no notifications; give it a *pgxpool.Pool")

var _ outbox.Listener = (*Store)(nil)
