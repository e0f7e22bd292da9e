package main

import (
	"time"

	"github.com/packfinderz/outbox/consume/inbox"
	"github.com/packfinderz/outbox/packfinderz/internal/env"
)

// How long events are remembered, and how long they are held. The older name of the first counts in hours.
const (
	processingName = "PACKFINDERZ_EVENTING_PROCESSING_TTL"

	ttlName     = "PACKFINDERZ_EVENTING_IDEMPOTENCY_TTL"
	hoursName   = "PACKFINDERZ_OUTBOX_IDEMPOTENCY_TTL_HOURS"
	maxTTLHours = 10 * 365 * 24
)

func idempotencyTTL(r *env.Reader) time.Duration {
	if r.Text("", ttlName) == "" {
		hours := r.Int(hoursName, int(inbox.DefaultDone/time.Hour), 1, maxTTLHours)
		return time.Duration(hours) * time.Hour
	}
	return r.Duration(ttlName, inbox.DefaultDone, time.Second, env.Endless)
}
