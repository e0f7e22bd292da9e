package outbox

import (
	"time"

	"github.com/google/uuid"
)

// A hook is any value with one or more of the methods below. Hooks are called by the
// relay's own goroutines, several at a time: they must be quick and safe for concurrent
// use.

// ClaimHook is told of every claim that took something.
type ClaimHook interface {
	OnClaim(report ClaimReport)
}

// ClaimReport is what a claim took.
type ClaimReport struct {
	// Events is how many events it took.
	Events int
	// Reclaimed is how many of them another claim had held until its lease ran out.
	Reclaimed int
	// Took is how long it took.
	Took time.Duration
}

// SettleHook is told of every batch that was settled.
type SettleHook interface {
	OnSettle(report BatchReport)
}

// BatchReport is what became of a batch. Outcomes is reused after the call returns; copy it to keep it.
type BatchReport struct {
	// Messages are the batch, in claimed order.
	Messages []Message
	// Outcomes are what became of each.
	Outcomes []Outcome
	// Lost are the events that were no longer ours when they were settled.
	Lost []uuid.UUID
	// Publish and Settle are how long those took.
	Publish, Settle time.Duration
}

// RouteHook is told when a route is closed, with the error, and when it is open again. It is not
// told of the routes that are open from the start.
type RouteHook interface {
	OnRoute(status RouteStatus)
}

// SweepHook is told how many events a sweep moved to dead.
type SweepHook interface {
	OnSweep(dead int64)
}

// StoreErrorHook is told when the store failed, such as a database that is away.
type StoreErrorHook interface {
	OnStoreError(err error)
}

// isHook reports whether a value has one of the methods above.
func isHook(hook any) bool {
	switch hook.(type) {
	case ClaimHook, SettleHook, RouteHook, SweepHook, StoreErrorHook:
		return true
	}
	return false
}

// each calls notify for the hooks that have the interface.
func each[H any](hooks []any, notify func(H)) {
	for _, hook := range hooks {
		if h, ok := hook.(H); ok {
			notify(h)
		}
	}
}
