package doctor

import (
	"context"
	"errors"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/wake"
)

// lookAtNotifications listens and notifies, as a relay does, unless a pooler in transaction mode is in between:
// there it would listen in somebody else's session.
func lookAtNotifications(ctx context.Context, e *exam) (string, error) {
	err := wake.Probe(ctx, e.pool, e.patient.wakes())
	if errors.Is(err, outbox.ErrNoNotifications) {
		e.add(Warning, "notifications do not arrive through this connection, as behind a pooler in transaction mode: "+e.patient.deaf(),
			"Give relays a connection past the pooler; or say --notify=false and accept the polling.")
		return "", nil
	}
	return "a notification arrived", err
}
