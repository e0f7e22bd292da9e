package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/internal/await"
	"github.com/packfinderz/outbox/internal/pgserver"
	"github.com/packfinderz/outbox/internal/pgtest"
	"github.com/packfinderz/outbox/packfinderz/internal/migrate"
	"github.com/packfinderz/outbox/packfinderz/internal/pftest"
	"github.com/packfinderz/outbox/packfinderz/pkg/enums"
	"github.com/packfinderz/outbox/pgstore"
)

// Every event type arrives once, at its topic and no other, with its ids beside it and its row's own bytes.
// The environment renames a topic; it reroutes nothing.
func TestEveryEventTypeReachesItsTopic(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.env["PACKFINDERZ_PUBSUB_BILLING_TOPIC"] = "money"
	b.broker.CreateTopic(t, "money")
	list := pftest.Payloads()
	ids := b.emit(list...)
	b.start()
	b.await()
	topics := map[string]string{"ad": "pf-analytics-events", "notification": "pf-notification-events", "ledger_event": "money"}
	messages := b.messages()
	for i, id := range ids {
		var aggregateType, aggregateID string
		var payload []byte
		row := b.pool.QueryRow(t.Context(), `SELECT aggregate_type, aggregate_id::text, payload_json::text::bytea
			FROM outbox_events WHERE id = $1 AND published_at IS NOT NULL AND attempt_count = 0 AND last_error IS NULL`, id)
		if err := row.Scan(&aggregateType, &aggregateID, &payload); err != nil {
			t.Fatalf("%T: %v", list[i], err)
		}
		if len(messages[id]) != 1 {
			t.Errorf("%T arrived %d times", list[i], len(messages[id]))
			continue
		}
		message := messages[id][0]
		want := topics[aggregateType]
		if want == "" {
			want = "pf-domain-events"
		}
		if got := path.Base(message.Topic); got != want {
			t.Errorf("%T arrived at %s, want %s", list[i], got, want)
		}
		if !bytes.Equal(message.Data, payload) {
			t.Errorf("%T arrived as %s, and its row has %s", list[i], message.Data, payload)
		}
		for name, want := range map[string]string{
			"event_id": id.String(), "event_type": string(list[i].EventType()), "aggregate_type": aggregateType, "aggregate_id": aggregateID,
		} {
			if got := message.Attributes[name]; got != want {
				t.Errorf("%T has the attribute %s=%s, want %s", list[i], name, got, want)
			}
		}
		if message.Attributes["created_at"] == "" {
			t.Errorf("%T has no created_at", list[i])
		}
	}
}

// Each attempt is one line at info level, whatever came of it, with the four ids.
func TestOneInfoLinePerAttempt(t *testing.T) {
	t.Parallel()
	service := newMoody()
	b := newBed(t, service.on())
	ids := b.emitMany(3)
	slow := ids[1]
	service.refuse(slow, 1)
	dead := b.insert("order_expired", "vendor_order", []byte(`{"data": null}`))
	b.start()
	b.await()
	for message, want := range map[string][]uuid.UUID{"event delivered": ids, "event released": {slow}, "event dead": {dead}} {
		lines := b.log.all(t, message)
		for _, id := range want {
			found := 0
			for _, line := range lines {
				if line["event_id"] != id.String() {
					continue
				}
				found++
				if line["level"] != "INFO" || line["event_type"] == "" || line["aggregate_type"] != "vendor_order" || line["aggregate_id"] == "" ||
					(message != "event delivered") != (line["error"] != nil) {
					t.Errorf("the line is %v", line)
				}
			}
			if found != 1 || len(lines) != len(want) {
				t.Errorf("%q: %d lines for event %s, %d in all, want 1 and %d", message, found, id, len(lines), len(want))
			}
		}
	}
}

// A message that fails while others get through is counted, with its error, and tried again; nobody is held up by it.
// At the maximum it is dead: one DLQ row, and never published after.
func TestRetriesAreBounded(t *testing.T) {
	t.Parallel()
	service := newMoody()
	b := newBed(t, service.on())
	b.env["PACKFINDERZ_OUTBOX_MAX_ATTEMPTS"] = "2"
	ids := b.emitMany(5)
	doomed, slow := ids[1], ids[3]
	service.refuse(doomed, 1_000_000)
	counted := make(chan bool, 1)
	service.refuseWhile(slow, func() bool {
		if b.number(`SELECT attempt_count FROM outbox_events WHERE id = $1`, slow) == 0 {
			return true
		}
		select {
		case counted <- b.number(`SELECT count(*) FROM outbox_events WHERE id = $1 AND attempt_count = 1 AND length(last_error) = 1000`, slow) == 1:
		default:
		}
		return false
	})
	stop := b.start()
	// What Pub/Sub stumbles over says nothing about an event until others get through.
	await.Until(t, "the slow one to be tried again", func() bool {
		b.emitMany(1)
		return len(counted) == 1
	})
	if !<-counted {
		t.Error("the slow one was tried again with another attempt_count than 1, or with another error than its own, cut")
	}
	await.Until(t, "the doomed one to be dead", func() bool {
		b.emitMany(1)
		return b.number(`SELECT count(*) FROM outbox_dlq WHERE event_id = $1`, doomed) == 1
	})
	b.await()
	stop()
	if n := b.number(`SELECT count(*) FROM outbox_events WHERE published_at IS NULL AND id <> $1`, doomed); n != 0 {
		t.Errorf("%d of the others are not published", n)
	}
	if n := b.number(`SELECT attempt_count FROM outbox_events WHERE id = $1 AND published_at IS NULL AND last_error LIKE '%refused%'`, doomed); n != 2 {
		t.Errorf("the dead one has attempt_count %d", n)
	}
	b.wantDead(map[uuid.UUID]enums.ErrorReason{doomed: enums.ReasonMaxAttempts})
	tried := service.tried(doomed)
	if len(b.messages()[doomed]) != 0 {
		t.Error("the dead one was published")
	}
	// Neither a new start nor a higher maximum brings it back.
	b.env["PACKFINDERZ_OUTBOX_MAX_ATTEMPTS"] = "20"
	more := b.emitMany(1)
	b.start()
	b.await()
	if len(b.messages()[more[0]]) != 1 || service.tried(doomed) != tried {
		t.Errorf("after a restart the dead one was tried %d times", service.tried(doomed)-tried)
	}
}

// wantDead compares what is in the DLQ: each event once, with its reason and its row's own payload.
func (b *bed) wantDead(want map[uuid.UUID]enums.ErrorReason) {
	b.Helper()
	for id, reason := range want {
		if n := b.number(`SELECT count(*) FROM outbox_dlq d JOIN outbox_events e ON e.id = d.event_id
			WHERE e.id = $1 AND d.error_reason = $2::text::outbox_dlq_reason_enum AND e.published_at IS NULL
			AND (d.event_type, d.aggregate_type, d.aggregate_id, d.created_at, d.attempt_count, d.last_error)
				= (e.event_type, e.aggregate_type, e.aggregate_id, e.created_at, e.attempt_count, e.last_error)
			AND d.payload_json::text = e.payload_json::text`, id, string(reason)); n != 1 {
			b.Errorf("event %s has %d DLQ rows as they should be, with %s", id, n, reason)
		}
	}
	if n := b.number(`SELECT count(*) FROM outbox_dlq`); n != len(want) {
		b.Errorf("the DLQ has %d rows, want %d", n, len(want))
	}
}

// The publisher does not start where every event would die or wait for ever, and says what to do.
func TestRefusesToStart(t *testing.T) {
	t.Parallel()
	// Only if it does start, the context has to end it.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b := newBed(t)
	b.env["PACKFINDERZ_PUBSUB_ANALYTICS_TOPIC"] = "not-there"
	if err := b.run(ctx); err == nil || !strings.Contains(err.Error(), "not-there") {
		t.Errorf("with a topic that is missing: %v", err)
	}
	delete(b.env, "PACKFINDERZ_PUBSUB_ANALYTICS_TOPIC")
	b.env["PACKFINDERZ_DATABASE_URL"] = pgtest.URL(t)
	if err := b.run(ctx); !errors.Is(err, pgstore.ErrMismatch) || !strings.Contains(err.Error(), "migrate") {
		t.Errorf("without its tables: %v", err)
	}
}

// Readiness is that of PostgreSQL and Pub/Sub, at the start and later; health is the process's own.
func TestReadiness(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, nil)
	url := server.TCPURL("postgres")
	if err := migrate.Up(t.Context(), url, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	b := newBedOn(t, url, pgtest.Connect(t, url))
	b.broker.Stop(t)
	b.start()
	await.Until(t, "the publisher to be alive, and not ready", func() bool { return b.get("/healthz") == 200 && b.ready() == 503 })
	b.broker.Start(t)
	await.Until(t, "readiness with Pub/Sub there", func() bool { return b.ready() == 200 })
	if err := server.Halt(t.Context(), pgserver.Immediate); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "no readiness without PostgreSQL", func() bool { return b.get("/healthz") == 200 && b.ready() == 503 })
	if err := server.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "readiness with PostgreSQL back", func() bool { return b.ready() == 200 })
}
