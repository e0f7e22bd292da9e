package ops

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/ops/view"
)

// backend is what differs between a queue table and a subscription of a stream. It checks nothing that an Outbox checks
// for both, and writes no audit log.
type backend interface {
	Describe() Description
	// Verify checks that the tables are what this program needs.
	Verify(ctx context.Context) error
	// Ready says why the events cannot be read or changed at present.
	Ready(ctx context.Context) error
	// Wake tells relays that there are events.
	Wake(ctx context.Context) error

	// Overview fills in an overview.
	Overview(ctx context.Context, o *Overview) error
	// Stats fills in Lag or Totals.
	Stats(ctx context.Context, s *Stats) error
	List(ctx context.Context, filter *Filter, after *view.Position, size int) (*Listing, error)
	// Show reads an event. Its timeline includes what people did to it, and need not be sorted.
	Show(ctx context.Context, id uuid.UUID, people []Moment) (*Details, error)
	DeadGroups(ctx context.Context) (*DeadGroups, error)

	// Count counts the events that an operation would change, and reports whether there are more. It leaves out
	// events that came into their state at or after before.
	Count(ctx context.Context, operation Operation, filter *Filter, before time.Time) (n int64, atLeast bool, err error)
	// Steps returns a function that retries, holds or releases one batch of events per call.
	Steps(operation Operation, filter *Filter, before time.Time, size int) view.Step
	// Replay publishes delivered events again, or parks them for a relay. It returns how many, even with an error.
	Replay(ctx context.Context, filter *Filter, replay view.Replay) (events int64, err error)
	// Purger opens the store that purges.
	Purger(ctx context.Context, purge outbox.Purge, log *slog.Logger) (store outbox.Store, done func(), err error)
}
