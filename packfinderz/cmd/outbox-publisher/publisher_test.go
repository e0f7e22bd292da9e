package main

import (
	"bytes"
	"context"
	"errors"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/google/uuid"

	"github.com/packfinderz/outbox/destinations/gcppubsub/pubsubtest"
	"github.com/packfinderz/outbox/layouts/packfinderz"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/testdb"
	"github.com/packfinderz/outbox/packfinderz/internal/backendtest"
	"github.com/packfinderz/outbox/packfinderz/internal/pftest"
	"github.com/packfinderz/outbox/packfinderz/internal/program"
	"github.com/packfinderz/outbox/packfinderz/pkg/enums"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/registry"
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
		// Where a type goes that the backend has besides is its own business.
		ofContract := slices.Contains(packfinderz.Layout().Columns.Type.Values, string(list[i].EventType()))
		if got := path.Base(message.Topic); got != want && ofContract {
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
				if line["level"] != "INFO" || line["attempt"] != 1.0 || line["outcome"] != strings.TrimPrefix(message, "event ") || line["event_type"] == "" || line["aggregate_type"] != "vendor_order" || line["aggregate_id"] == "" ||
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

// An event whose settle fails is published again, and the log shows it: a line for each acknowledgement, the later ones with how
// often it was acknowledged before.
func TestDuplicatesAreInTheLog(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	testdb.Exec(t, b.pool, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not now'; END $$`)
	testdb.Exec(t, b.pool, `CREATE TRIGGER refuse BEFORE UPDATE ON outbox_events FOR EACH ROW EXECUTE FUNCTION refuse()`)
	id := b.emitMany(1)[0]
	b.start()
	await.Until(t, "the event to be published twice", func() bool { return len(b.messages()[id]) >= 2 })
	testdb.Exec(t, b.pool, `DROP TRIGGER refuse ON outbox_events`)
	b.await()
	lines := b.log.all(t, "event delivered")
	if len(lines) != len(b.messages()[id]) {
		t.Errorf("%d lines, and Pub/Sub has it %d times", len(lines), len(b.messages()[id]))
	}
	for n, line := range lines {
		before, _ := line["acknowledged_before"].(float64)
		if line["event_id"] != id.String() || int(before) != n {
			t.Errorf("line %d is %v", n, line)
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
	const create, instead = "gcloud pubsub topics create not-there --project " + pubsubtest.Project,
		"PACKFINDERZ_PUBSUB_ANALYTICS_TOPIC and PACKFINDERZ_PUBSUB_BILLING_TOPIC"
	b.env["PACKFINDERZ_PUBSUB_ANALYTICS_TOPIC"], b.env["PACKFINDERZ_PUBSUB_BILLING_TOPIC"] = "not-there", "not-there"
	if err := b.run(ctx); program.ExitCode(err) != 2 || strings.Count(err.Error(), create) != 1 || !strings.Contains(err.Error(), instead) {
		t.Errorf("with a topic that is missing: %v", err)
	}
	delete(b.env, "PACKFINDERZ_PUBSUB_ANALYTICS_TOPIC")
	delete(b.env, "PACKFINDERZ_PUBSUB_BILLING_TOPIC")
	b.env["PACKFINDERZ_DATABASE_URL"] = testdb.URL(t)
	if err := b.run(ctx); !errors.Is(err, pgstore.ErrMismatch) || program.ExitCode(err) != 2 || !strings.Contains(err.Error(), "; api migrate does it, too") {
		t.Errorf("without its tables: %v", err)
	}
}

// A topic of the registry is deleted under load: readiness fails, by name, and nothing is counted or dead. The events of other
// topics go on. When it is there again everything is published.
func TestDeletedTopic(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.env["PACKFINDERZ_OUTBOX_MAX_ATTEMPTS"] = "2"
	b.start()
	await.Until(t, "readiness", func() bool { return b.ready() == 200 })
	topic := pubsubtest.TopicPath(registry.DefaultTopics().Billing)
	if _, err := b.broker.Server.GServer.DeleteTopic(t.Context(), &pubsubpb.DeleteTopicRequest{Topic: topic}); err != nil {
		t.Fatal(err)
	}
	// Without a single event for it, too.
	await.Until(t, "no readiness without the topic", func() bool { return b.ready() == 503 })
	if why := backendtest.Answer(t, "http://"+b.listen+"/readyz"); !strings.Contains(why, registry.DefaultTopics().Billing) {
		t.Errorf("the answer is %q, and does not name the topic", why)
	}
	for _, payload := range pftest.Payloads() {
		b.emit(payload)
	}
	others := b.emitMany(20)
	routes, err := registry.New(registry.DefaultTopics())
	if err != nil {
		t.Fatal(err)
	}
	var waiting []string
	for eventType, route := range routes {
		if route.Topic == registry.DefaultTopics().Billing {
			waiting = append(waiting, eventType)
		}
	}
	await.Until(t, "the others to be published", func() bool {
		return b.number(`SELECT count(*) FROM outbox_events WHERE published_at IS NULL AND event_type::text <> ALL($1)`, waiting) == 0
	})
	for _, id := range others {
		if len(b.messages()[id]) == 0 {
			t.Errorf("event %s of another topic did not arrive", id)
		}
	}
	await.Until(t, "the route to be closed", func() bool {
		return len(b.log.all(t, "the route is closed: its events wait, and no attempt is counted")) > 0
	})
	const harmed = `SELECT (SELECT count(*) FROM outbox_dlq) + (SELECT count(*) FROM outbox_events WHERE attempt_count > 0)`
	if n := b.number(harmed); n != 0 {
		t.Errorf("%d events were counted or are dead", n)
	}
	b.broker.CreateTopic(t, registry.DefaultTopics().Billing)
	b.await()
	await.Until(t, "readiness with the topic back", func() bool { return b.ready() == 200 })
	if n := b.number(harmed); n != 0 {
		t.Errorf("%d events were counted or are dead", n)
	}
}

// The numbers are those of the table and of what was done: what waits and how long, what is dead and why, attempts, and the time of a publish.
func TestMetrics(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insert("order_expired", "vendor_order", []byte(`null`))
	used := b.insert("order_expired", "vendor_order", []byte(`{}`))
	testdb.Exec(t, b.pool, `UPDATE outbox_events SET attempt_count = 10 WHERE id = $1`, used)
	b.emitMany(3)
	b.start()
	b.await()
	backendtest.AwaitMetrics(t, b.listen,
		`packfinderz_outbox_backlog_events 0`, `packfinderz_outbox_oldest_seconds 0`, `packfinderz_outbox_max_attempts_events 1`,
		`packfinderz_outbox_dlq_events{reason="invalid_payload"} 1`, `packfinderz_outbox_dlq_events{reason="max_attempts"} 1`,
		`packfinderz_outbox_dlq_events{reason="rejected"} 0`, `packfinderz_outbox_attempts_total{outcome="delivered"} 3`,
		`packfinderz_outbox_attempts_total{outcome="dead"} 1`, `packfinderz_outbox_attempts_total{outcome="failed"} 0`)
	if body := backendtest.Answer(t, "http://"+b.listen+"/metrics"); !regexp.MustCompile(`(?m)^packfinderz_outbox_publish_seconds_count [1-9]`).MatchString(body) {
		t.Errorf("no publish was timed:\n%s", body)
	}
	b.broker.Stop(t)
	b.emitMany(2)
	testdb.Exec(t, b.pool, `INSERT INTO outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json, created_at)
		VALUES (gen_random_uuid(), 'ad_paused', 'ad', gen_random_uuid(), '{}', now() - interval '1 hour')`)
	backendtest.AwaitMetrics(t, b.listen, `packfinderz_outbox_backlog_events 3`)
	if body := backendtest.Answer(t, "http://"+b.listen+"/metrics"); !regexp.MustCompile(`(?m)^packfinderz_outbox_oldest_seconds 36[0-9]{2}`).MatchString(body) {
		t.Errorf("the oldest is not an hour old:\n%s", body)
	}
	b.broker.Start(t)
}
