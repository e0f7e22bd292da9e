package main

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/outboxtest/await"
)

// outageTime is how long Pub/Sub is away: long enough that attempts which are counted would be used up many
// times over.
const outageTime = 8 * time.Second

// Pub/Sub is away under load, with two attempts for each event. Nothing is counted, nothing dies, and everything
// is published when it is back.
func TestOutage(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.env["PACKFINDERZ_OUTBOX_MAX_ATTEMPTS"] = "2"
	b.start()
	ids := b.emitMany(200)
	await.Until(t, "the first events to arrive", func() bool { return len(b.messages()) > 0 })
	b.broker.Stop(t)
	var later []uuid.UUID
	pace, over := time.NewTicker(50*time.Millisecond), time.After(outageTime)
	defer pace.Stop()
	for away := true; away || len(later) < 100; {
		later = append(later, b.emitMany(10)...)
		select {
		case <-pace.C:
		case <-over:
			away = false
		}
	}
	if b.ready() != 503 || len(b.log.all(t, "the route is closed: its events wait, and no attempt is counted")) == 0 {
		t.Error("the publisher did not notice the outage")
	}
	if waiting := b.number(`SELECT count(*) FROM outbox_events WHERE published_at IS NULL`); waiting < len(later)/2 {
		t.Fatalf("%d events waited at the end of the outage, of %d", waiting, len(later))
	}
	b.broker.Start(t)
	b.await()
	if n := b.number(`SELECT count(*) FROM outbox_dlq`) + b.number(`SELECT count(*) FROM outbox_events WHERE attempt_count > 0`); n != 0 {
		t.Errorf("%d events were counted or are dead", n)
	}
	messages := b.messages()
	for _, id := range append(ids, later...) {
		if len(messages[id]) == 0 {
			t.Errorf("event %s never arrived", id)
		}
	}
}
