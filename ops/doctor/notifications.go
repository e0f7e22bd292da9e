package doctor

import (
	"context"
	"errors"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/wake"
)

// lookAtNotifications really listens and notifies, as a relay does, unless there is a pooler in
// transaction mode between: there it would listen in somebody else's session.
func lookAtNotifications(ctx context.Context, e *exam) error {
	err := wake.Probe(ctx, e.pool, e.patient.wakes())
	if errors.Is(err, outbox.ErrNoNotifications) {
		severity, means, do := e.patient.deaf()
		e.add(severity, "notifications do not arrive through this connection, as behind a pooler in transaction mode: "+means, do)
		return nil
	}
	if err == nil {
		e.well("a notification arrived")
	}
	return err
}
