package ops

import (
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
)

// Change says how events are changed.
type Change struct {
	// Actor is the person's name in the audit log.
	Actor string
	// DryRun counts and changes nothing. The count may stop early; see Result.AtLeast.
	DryRun bool
	// BatchSize is the number of events changed in one transaction. Default 1,000.
	BatchSize int
	// Before leaves alone events that came into their state at or after this time. To continue an interrupted
	// retry, set it to that retry's Result.Before: an event that was retried and died again is not retried twice.
	// Default now.
	Before time.Time
	// Logger is told why a purge of a stream cannot empty a slot. Default slog.Default().
	Logger *slog.Logger
	// Progress is called after each batch with the number of events so far. Default none.
	Progress func(done int64)
}

// Replay says how events are published again.
type Replay struct {
	Change
	// Rate limits the events published per second; zero is no limit.
	Rate int
	// Publisher publishes the events of a queue table. It must be nil for a stream, whose relay publishes them.
	Publisher outbox.Publisher
	// DefaultTopic is the topic of a queue table's events that have none.
	DefaultTopic string
}

// Result says what a change did.
type Result struct {
	// Events is the number of events changed, or that would be changed with DryRun.
	Events int64 `json:"events"`
	// IDs are the events changed, if the filter has ids.
	IDs []uuid.UUID `json:"ids,omitempty"`
	// AtLeast is set if counting stopped at Events; with DryRun.
	AtLeast bool `json:"atLeast,omitempty"`
	// DryRun is set if nothing was changed.
	DryRun bool `json:"dryRun,omitempty"`
	// Interrupted is set if the context ended before everything was done. The events that Events counts are changed,
	// the others are untouched.
	Interrupted bool `json:"interrupted,omitempty"`
	// Before is Change.Before, or when the change began. Pass it to another change to continue this one.
	Before time.Time `json:"before,omitzero"`
	// Audit is the number of the entry in the audit log; zero if there is none.
	Audit int64 `json:"audit,omitempty"`
	// Unaudited says why there is no entry; empty if there is one, or if nothing was to be changed.
	Unaudited string `json:"unaudited,omitempty"`
}
