package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/testdb"
	"github.com/packfinderz/outbox/packfinderz/pkg/enums"
)

// Rows that can never be published end in the DLQ at once: each once, with its reason, and none of them at
// Pub/Sub. The rows around them do not notice.
func TestPoisonedRows(t *testing.T) {
	t.Parallel()
	service := newMoody()
	b := newBed(t, service.on())
	// A newer program has added an event type that this publisher does not know.
	testdb.Exec(t, b.pool, `ALTER TYPE event_type_enum ADD VALUE 'order_teleported'`)
	expired := fmt.Sprintf(`{"vendorOrderId": %q, "expiredAt": "2026-05-31T12:00:00Z"}`, uuid.New())
	envelope := func(version int, data string) []byte {
		return fmt.Appendf(nil, `{"version": %d, "eventId": %q, "occurredAt": "2026-05-31T12:00:00Z", "data": %s}`, version, rowID, data)
	}
	respelt := func(name, by string) []byte { return bytes.Replace(envelope(1, expired), []byte(name), []byte(by), 1) }
	large, err := json.Marshal(map[string]string{"reason": string(bytes.Repeat([]byte("!"), 10_000_000))})
	if err != nil {
		t.Fatal(err)
	}
	want := make(map[uuid.UUID]enums.ErrorReason)
	healthy := b.emitMany(10)
	for _, poison := range []struct {
		eventType, aggregateType string
		payload                  []byte
		reason                   enums.ErrorReason
	}{
		{"order_teleported", "vendor_order", envelope(1, expired), enums.ReasonUnknownEventType},
		{"order_expired", "license", envelope(1, expired), enums.ReasonInvalidAggregate},
		{"order_expired", "vendor_order", []byte(`null`), enums.ReasonInvalidPayload},
		{"order_expired", "vendor_order", envelope(1, `null`), enums.ReasonInvalidPayload},
		{"order_expired", "vendor_order", []byte(`{"version": 1}`), enums.ReasonInvalidPayload},
		{"order_expired", "vendor_order", envelope(1, `{}`), enums.ReasonInvalidPayload},
		{"order_expired", "vendor_order", envelope(2, expired), enums.ReasonInvalidPayload},
		{"order_expired", "vendor_order", envelope(1, `{"vendorOrderId": 7, "expiredAt": "2026-05-31T12:00:00Z"}`), enums.ReasonInvalidPayload},
		{"order_expired", "vendor_order", respelt(rowID, uuid.NewString()), enums.ReasonInvalidPayload},
		{"order_expired", "vendor_order", respelt("eventId", "EVENTID"), enums.ReasonInvalidPayload},
		{"order_expired", "vendor_order", respelt("expiredAt", "expiredat"), enums.ReasonInvalidPayload},
		{"ad_paused", "ad", envelope(1, string(large)), enums.ReasonPayloadTooLarge},
	} {
		want[b.insert(poison.eventType, poison.aggregateType, poison.payload)] = poison.reason
	}
	// Ids that identify nothing.
	b.insertRow(uuid.Nil, "order_expired", "vendor_order", uuid.New(), envelope(1, expired))
	want[uuid.Nil] = enums.ReasonInvalidRow
	nobodys := uuid.New()
	b.insertRow(nobodys, "order_expired", "vendor_order", uuid.Nil, envelope(1, expired))
	want[nobodys] = enums.ReasonInvalidAggregate
	// Times that no consumer can read.
	for _, at := range []string{"infinity", "20000-01-01", "0044-03-15 BC"} {
		id := b.insert("order_expired", "vendor_order", envelope(1, expired))
		testdb.Exec(t, b.pool, `ALTER TABLE outbox_events DISABLE TRIGGER USER; UPDATE outbox_events SET created_at = '`+at+`' WHERE id = '`+id.String()+`';
			ALTER TABLE outbox_events ENABLE TRIGGER USER`)
		want[id] = enums.ReasonInvalidRow
	}
	// An empty object is data, where the event type needs none.
	healthy = append(healthy, b.insert("ad_paused", "ad", envelope(1, `{}`)))
	healthy = append(healthy, b.emitMany(10)...)
	stop := b.start()
	b.await()
	stop()
	b.wantDead(want)
	messages := b.messages()
	for id := range want {
		if service.tried(id) != 0 {
			t.Errorf("event %s was published, and is dead of %s", id, want[id])
		}
	}
	for _, id := range healthy {
		if len(messages[id]) != 1 {
			t.Errorf("event %s arrived %d times", id, len(messages[id]))
		}
	}
	// A check is no attempt: only what was handed to the publisher is counted.
	if n := b.number(`SELECT count(*) FROM outbox_dlq WHERE attempt_count = 0 AND last_error <> ''`); n != len(want)-1 {
		t.Errorf("%d dead rows without an attempt and with an error, want %d", n, len(want)-1)
	}
}

// The DLQ row and the event's own mark are written together or not at all, whichever of the two fails.
func TestDLQRowAndMarkAreOneTransaction(t *testing.T) {
	t.Parallel()
	for table, event := range map[string]string{"outbox_dlq": "INSERT", "outbox_events": "UPDATE"} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			testdb.Exec(t, b.pool, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not now'; END $$`)
			testdb.Exec(t, b.pool, fmt.Sprintf(`CREATE TRIGGER refuse BEFORE %s ON %s FOR EACH ROW EXECUTE FUNCTION refuse()`, event, table))
			poison := b.insert("order_expired", "vendor_order", []byte(`null`))
			b.start()
			await.Until(t, "the settle to fail twice", func() bool { return len(b.log.all(t, "a batch could not be settled; it will be published again")) >= 2 })
			if n := b.number(`SELECT (SELECT count(*) FROM outbox_dlq) + (SELECT count(*) FROM outbox_events WHERE last_error IS NOT NULL)`); n != 0 {
				t.Error("one of the two was written")
			}
			testdb.Exec(t, b.pool, "DROP TRIGGER refuse ON "+table)
			b.await()
			b.wantDead(map[uuid.UUID]enums.ErrorReason{poison: enums.ReasonInvalidPayload})
		})
	}
}

// An event with a DLQ row that nobody has retried is not tried, however that row came to be: here in SQL, for any reason, without
// an error, and without a mark in the event's own row. Retried, it goes out.
func TestAnyDLQRowKeepsItsEventBack(t *testing.T) {
	t.Parallel()
	service := newMoody()
	b := newBed(t, service.on())
	dead := b.emitMany(len(enums.ErrorReasons()))
	for i, reason := range enums.ErrorReasons() {
		testdb.Exec(t, b.pool, `INSERT INTO outbox_dlq (event_id, event_type, aggregate_type, aggregate_id, payload_json, error_reason, created_at, attempt_count)
			SELECT id, event_type, aggregate_type, aggregate_id, payload_json, $2::text::outbox_dlq_reason_enum, created_at, attempt_count
			FROM outbox_events WHERE id = $1`, dead[i], string(reason))
	}
	healthy := b.emitMany(3)
	b.start()
	b.await()
	for _, id := range dead {
		if n := service.tried(id); n != 0 {
			t.Errorf("event %s, which has a DLQ row, was tried %d times", id, n)
		}
	}
	if n := b.number(`SELECT count(*) FROM outbox_events WHERE id = ANY($1) AND published_at IS NULL AND attempt_count = 0 AND last_error IS NULL`, dead); n != len(dead) {
		t.Errorf("%d of %d dead rows are as they were", n, len(dead))
	}
	if n := b.number(`SELECT count(*) FROM outbox_events WHERE id = ANY($1) AND published_at IS NOT NULL`, healthy); n != len(healthy) {
		t.Errorf("%d of the %d others are published", n, len(healthy))
	}
	testdb.Exec(t, b.pool, `UPDATE outbox_dlq SET retried_at = now()`)
	b.await()
	if n := b.number(`SELECT count(*) FROM outbox_events WHERE published_at IS NULL`); n != 0 {
		t.Errorf("%d retried events are not published", n)
	}
}
