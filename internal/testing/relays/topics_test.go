package relays_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/outboxtest"
	"github.com/packfinderz/outbox/pgstore"
)

// topics is a broker at which one topic may be missing.
type topics struct {
	*outboxtest.Broker
	missing string
	isThere atomic.Bool
}

func (p *topics) Publish(ctx context.Context, messages []outbox.Message) []error {
	errs := make([]error, len(messages))
	for i := range messages {
		if errs[i] = p.PingTopic(ctx, messages[i].Topic); errs[i] == nil {
			errs[i] = p.Broker.Publish(ctx, messages[i:i+1])[0]
		}
	}
	return errs
}

func (p *topics) PingTopic(_ context.Context, topic string) error {
	switch {
	case topic != p.missing || p.isThere.Load():
		return nil
	case topic == "":
		return outbox.ErrNoTopic
	}
	return outbox.TopicMissing(errors.New("there is no topic " + topic))
}

// eventsTo are events of the bed's store that go to a topic: by the registry where a table has
// none of its own.
func (b *bed) eventsTo(topic string, n int) []outbox.Event {
	b.Helper()
	events := make([]outbox.Event, n)
	for i := range events {
		events[i] = b.event()
		switch b.name {
		case "modkit", stream:
			events[i].Topic = topic
		case "doorito":
			events[i].Type = topic
		default:
			events[i].Type = map[string]string{"gone": "order_created", "fine": "order_expired"}[topic]
		}
	}
	return events
}

// registry sends the types of eventsTo to their topics, where the store has none.
func (b *bed) registry() outbox.Registry {
	switch b.name {
	case "doorito":
		return outbox.Registry{"gone": {Topic: "gone"}, "fine": {Topic: "fine"}}
	case "packfinderz":
		return outbox.Registry{"order_created": {Topic: "gone"}, "order_expired": {Topic: "fine"}}
	}
	return nil
}

// TestDeletedTopic has the events of a topic that was deleted wait before those of another: these
// go past them at once, and the others, of which nothing was counted, when the topic is back.
func TestDeletedTopic(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(b *bed) {
		gone := b.emitEvents(b.eventsTo("gone", 300)...)
		fine := b.emitEvents(b.eventsTo("fine", 50)...)
		broker := &topics{Broker: b.broker, missing: "gone"}
		config := b.config(6, pgstore.Config{MaxAttempts: 1}) // one counted attempt would be death
		config.Publisher, config.BatchSize, config.Registry = broker, 40, b.registry()
		relay := b.start(config)
		b.waitReceived(len(fine))
		b.wantOnce(fine)
		later := b.emitEvents(b.eventsTo("fine", 50)...)
		b.waitReceived(len(fine) + len(later))
		b.wantOnce(later)
		closed := slices.DeleteFunc(relay.Routes(), func(r outbox.RouteStatus) bool { return r.Open })
		if len(closed) != 1 || closed[0].Topic != "gone" || relay.Available() {
			b.Errorf("the closed routes are %+v, want the topic gone", closed)
		}
		broker.isThere.Store(true)
		b.waitReceived(len(fine) + len(later) + len(gone))
		outboxtest.Stop(b, relay)
		b.wantOnce(slices.Concat(fine, later, gone))
		for _, m := range b.broker.Received() {
			if m.Attempt != 1 {
				b.Errorf("an event was delivered at attempt %d, want its first", m.Attempt)
			}
		}
		if n := b.logs.Count("the route is closed"); n != 1 {
			b.Errorf("the loss of the topic was logged %d times, want once: %s", n, b.logs.Text())
		}
	})
}

// TestTopicless has events without a topic wait before others, at a destination that needs one. They wait by
// themselves, uncounted.
func TestTopicless(t *testing.T) {
	t.Parallel()
	b := newBed(t, "modkit")
	waiting := b.emitEvents(b.eventsTo("none", 300)...)
	pgtest.Exec(t, b.pool, `UPDATE modkit_outbox_events SET topic = ''`)
	fine := b.emitEvents(b.eventsTo("fine", 50)...)
	broker := &topics{Broker: b.broker}
	config := b.config(6, pgstore.Config{MaxAttempts: 1}) // one counted attempt would be death
	config.Publisher, config.BatchSize = broker, 40
	relay := b.start(config)
	b.waitReceived(len(fine))
	b.wantOnce(fine)
	closed := slices.DeleteFunc(relay.Routes(), func(r outbox.RouteStatus) bool { return r.Open })
	if len(closed) != 1 || !closed[0].Topicless || closed[0].Name() != "events without a topic" || relay.Available() {
		b.Errorf("the closed routes are %+v, want that of events without a topic", closed)
	}
	broker.isThere.Store(true)
	b.waitReceived(len(fine) + len(waiting))
	outboxtest.Stop(t, relay)
	b.wantOnce(slices.Concat(fine, waiting))
}

// TestInvalidRow has two rows of twenty that cannot be read: one of no time, and one of a year that no consumer can read. They are
// dead, with the reason, and the others are delivered at their first attempt.
func TestInvalidRow(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(b *bed) {
		ids := b.emit(20)
		spoil := map[string]string{
			"packfinderz": `ALTER TABLE outbox_events DISABLE TRIGGER ALL`,
			"doorito":     `UPDATE outbox_event SET created_at = $2::text::timestamptz WHERE id = $1`,
			"modkit":      `UPDATE modkit_outbox_events SET created_at = $2::text::timestamptz WHERE id = $1`,
			stream:        `UPDATE outbox_stream SET headers = '[1]' WHERE id = $1 AND $2::text <> ''`,
		}[b.name]
		if b.name == "packfinderz" { // whose rows do not change
			pgtest.Exec(b.T, b.pool, spoil)
			spoil = `UPDATE outbox_events SET created_at = $2::text::timestamptz WHERE id = $1`
		}
		if b.name == stream { // as it may be from before the database refused it
			pgtest.Exec(b.T, b.pool, `ALTER TABLE outbox_stream DROP CONSTRAINT outbox_stream_headers_check`)
		}
		pgtest.Exec(b.T, b.pool, spoil, ids[7], "-infinity")
		pgtest.Exec(b.T, b.pool, spoil, ids[9], "20000-01-01")
		b.drain(b.config(4, pgstore.Config{}))
		whole := slices.DeleteFunc(slices.Clone(ids), func(id uuid.UUID) bool { return id == ids[7] || id == ids[9] })
		b.wantOnce(whole)
		if n := len(b.broker.Received()); n != len(whole) {
			b.Errorf("%d messages arrived, want %d", n, len(whole))
		}
		for _, m := range b.broker.Received() {
			if m.Attempt != 1 {
				b.Errorf("event %s was delivered at attempt %d, want its first", m.ID, m.Attempt)
			}
		}
		dead := map[string]string{
			"packfinderz": `SELECT attempt_count = 0 AND last_error LIKE 'the row cannot be read: created_at%'
				AND EXISTS (SELECT FROM outbox_dlq WHERE event_id = e.id AND error_reason = 'invalid_row') FROM outbox_events e WHERE id = $1`,
			"doorito": `SELECT status = 'failed' AND attempts = 0 AND error_message LIKE 'the row cannot be read: created_at%' FROM outbox_event WHERE id = $1`,
			"modkit":  `SELECT status = 'dead' AND last_error LIKE 'the row cannot be read: created_at%' FROM modkit_outbox_events WHERE id = $1`,
			stream:    `SELECT state = 'dead' AND attempts = 0 AND reason = 'invalid_row' AND last_error LIKE '%headers%' FROM outbox_parked WHERE id = $1`,
		}[b.name]
		b.wantSQL(dead, ids[7])
		b.wantSQL(dead, ids[9])
	})
}
