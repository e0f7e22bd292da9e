package main

import (
	"time"

	"github.com/packfinderz/outbox/inbox"
	"github.com/packfinderz/outbox/packfinderz/internal/env"
)

// The older name of the idempotency TTL counts in hours.
const (
	ttlName     = "PACKFINDERZ_EVENTING_IDEMPOTENCY_TTL"
	hoursName   = "PACKFINDERZ_OUTBOX_IDEMPOTENCY_TTL_HOURS"
	maxTTLHours = 10 * 365 * 24
)

// idempotencyTTL is how long handled events are remembered.
func idempotencyTTL(r *env.Reader) time.Duration {
	if r.Text("", ttlName) == "" {
		hours := r.Int(hoursName, int(inbox.DefaultDone/time.Hour), 1, maxTTLHours)
		return time.Duration(hours) * time.Hour
	}
	return r.Duration(ttlName, inbox.DefaultDone, time.Second)
}
