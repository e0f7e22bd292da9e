package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/outboxtest/testdb"
	"github.com/packfinderz/outbox/packfinderz/pkg/enums"
)

// A payment that readers could take for another is never published: it is about another aggregate than its row, or only a lenient
// reader takes it. The column is an adopted one of type json, which keeps what was written.
func TestPoisonedMoney(t *testing.T) {
	t.Parallel()
	service := newMoody()
	b := newBed(t, service.on())
	for _, table := range []string{"outbox_events", "outbox_dlq"} {
		testdb.Exec(t, b.pool, fmt.Sprintf(`DROP TRIGGER %[1]s_append_only ON %[1]s; ALTER TABLE %[1]s ALTER payload_json TYPE json`, table))
	}
	ledger := uuid.New()
	payment := fmt.Sprintf(`{"version": 1, "eventId": %q, "occurredAt": "2026-05-31T12:00:00Z", "data": {"ledgerEventId": %q, "vendorOrderId": %q, `+
		`"amountCents": 4200, "currency": "USD", "method": "ach", "settledAt": "2026-05-31T13:00:00Z"}}`, rowID, ledger, uuid.New())
	insert := func(aggregate uuid.UUID, written, differently string) uuid.UUID {
		id := uuid.New()
		b.insertRow(id, string(enums.PaymentSettled), string(enums.AggregateLedgerEvent), aggregate, []byte(strings.Replace(payment, written, differently, 1)))
		return id
	}
	healthy := insert(ledger, "", "")
	want := map[uuid.UUID]enums.ErrorReason{insert(uuid.New(), "", ""): enums.ReasonInvalidAggregate}
	for _, poison := range [][2]string{
		{ledger.String(), "{" + ledger.String() + "}"},
		{`"amountCents"`, `"amountCents": 1, "amountCents"`},
		{`"version"`, `"version": 2, "version"`},
		{`"ach"`, `"\u0000"`},
		{`"ach"`, `"\u200b"`},
		{"2026-05-31T13", "0000-05-31T13"},
		{`"data"`, `"actor": {}, "data"`},
	} {
		want[insert(ledger, poison[0], poison[1])] = enums.ReasonInvalidPayload
	}
	stop := b.start()
	b.await()
	stop()
	b.wantDead(want)
	for id := range want {
		if service.tried(id) != 0 {
			t.Errorf("event %s was published, and is dead of %s", id, want[id])
		}
	}
	if n := len(b.messages()[healthy]); n != 1 {
		t.Errorf("the payment as it should be arrived %d times", n)
	}
}
