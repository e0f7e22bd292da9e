package ops

import (
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
)

// Change is how something is done to events.
type Change struct {
	// Actor is who does it, for the audit log.
	Actor string
	// DryRun counts only. The count may be bounded; see Result.AtLeast.
	DryRun bool
	// BatchSize is how many events one transaction changes. Default 1,000.
	BatchSize int
	// Before leaves events alone that came into their state at or after this time: with the
	// time at which an interrupted retry began (Result.Before) another one goes on with it, and
	// an event that it brought back and that died again is not brought back twice. Default now.
	Before time.Time
	// Logger is told what keeps a purge of a stream from emptying a slot. Default slog.Default().
	Logger *slog.Logger
	// Progress is told how many events are done, after each batch; nil for nobody.
	Progress func(done int64)
}

// Replay is how events are published again.
type Replay struct {
	Change
	// Rate is how many events are published per second; zero for no limit.
	Rate int
	// Publisher publishes the events of a queue table. A stream's relay does it itself.
	Publisher outbox.Publisher
	// DefaultTopic is the topic of events that have none; of a queue table.
	DefaultTopic string
}

// Result is what a change did.
type Result struct {
	// Events is how many events were changed, or would be with DryRun.
	Events int64 `json:"events"`
	// IDs are the events that were changed, where the filter names ids.
	IDs []uuid.UUID `json:"ids,omitempty"`
	// AtLeast is set where counting stopped at Events; with DryRun.
	AtLeast bool `json:"atLeast,omitempty"`
	// DryRun is set where nothing was changed.
	DryRun bool `json:"dryRun,omitempty"`
	// Interrupted is set where the context ended before all was done. What Events counts is
	// done, the rest is untouched.
	Interrupted bool `json:"interrupted,omitempty"`
	// Before is what Change.Before was, or when the change began: with it the rest can be done later.
	Before time.Time `json:"before,omitzero"`
	// Audit is the number of the entry in the audit log; zero if there is none.
	Audit int64 `json:"audit,omitempty"`
	// Unaudited says why there is no entry; empty if there is, or nothing was to be changed.
	Unaudited string `json:"unaudited,omitempty"`
}
