package outbox

import (
	"time"

	"github.com/google/uuid"
)

// A hook is any value with one or more of the methods below. The relay calls hooks from several goroutines at once:
// they must be quick and safe for concurrent use.

// ClaimHook observes every claim that took something.
type ClaimHook interface {
	OnClaim(report ClaimReport)
}

// ClaimReport describes a claim.
type ClaimReport struct {
	// Events is how many events it took.
	Events int
	// Reclaimed is how many of them another claim had held until its lease ran out.
	Reclaimed int
	// Took is how long it took.
	Took time.Duration
}

// SettleHook observes every settled batch.
type SettleHook interface {
	OnSettle(report BatchReport)
}

// BatchReport describes a settled batch. Outcomes is reused after the call returns; copy it to keep it.
type BatchReport struct {
	// Messages are the events of the batch, in claimed order.
	Messages []Message
	// Outcomes are the outcomes of Messages, in the same order.
	Outcomes []Outcome
	// Lost are the events whose lease was lost before they were settled.
	Lost []uuid.UUID
	// Publish and Settle are how long publishing and settling took.
	Publish, Settle time.Duration
}

// RouteHook is told when a route closes, with the error, and when it opens again. It is not told of routes that are
// open from the start.
type RouteHook interface {
	OnRoute(status RouteStatus)
}

// SweepHook is told how many events a sweep moved to dead.
type SweepHook interface {
	OnSweep(dead int64)
}

// StoreErrorHook is told when the store fails, for example because the database is down.
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

// each calls notify for every hook that implements H.
func each[H any](hooks []any, notify func(H)) {
	for _, hook := range hooks {
		if h, ok := hook.(H); ok {
			notify(h)
		}
	}
}
