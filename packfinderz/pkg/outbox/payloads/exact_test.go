package payloads_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/packfinderz/internal/pftest"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/payloads"
)

// settled is a stored payment, with one thing in it written differently.
func settled(t *testing.T, written, differently string) []byte {
	t.Helper()
	const stored = `{"version": 1, "eventId": "x", "occurredAt": "2026-05-31T12:00:00Z", "actor": {"type": "job", "id": "payouts"}, "data": {` +
		`"ledgerEventId": "019a0000-0000-7000-8000-00000000000a", "vendorOrderId": "019a0000-0000-7000-8000-00000000000b", "amountCents": 4200, ` +
		`"currency": "USD", "method": "ach", "settledAt": "2026-05-31T13:00:00Z", "new": {"list": [{"a": 1e999}, {"a": "b"}]}}}`
	if !strings.Contains(stored, written) {
		t.Fatalf("there is no %s in %s", written, stored)
	}
	return []byte(strings.Replace(stored, written, differently, 1))
}

// What Go would read, and others not, or not in the same way, is refused with words that say where to look.
func TestOnlyOneReading(t *testing.T) {
	t.Parallel()
	const order = "019a0000-0000-7000-8000-00000000000b"
	for _, c := range []struct{ written, differently, words string }{
		{order, "x" + order + "y", "vendorOrderId"},
		{order, "{" + order + "}", "vendorOrderId"},
		{order, "urn:uuid:" + order, "vendorOrderId"},
		{order, strings.ReplaceAll(order, "-", ""), "vendorOrderId"},
		{`"amountCents": 4200`, `"amountCents": 1, "amountCents": 4200`, `"amountCents" is there twice`},
		{`"amountCents": 4200`, `"amountCents": 1, "amount\u0043ents": 4200`, `"amountCents" is there twice`},
		{`"version": 1`, `"version": 2, "version": 1`, `"version" is there twice`},
		{`"type": "job"`, `"type": "user", "type": "job"`, `"type" is there twice`},
		{`{"a": "b"}`, `{"a": "c", "a": "b"}`, `"a" is there twice`},
		{`"ach"`, `"a\u0000ch"`, `\u0000`},
		{`{"a": "b"}`, `{"a\u0000": "b"}`, `\u0000`},
		{`"ach"`, `"\u200b\u2060\ufeff"`, "method is missing"},
		{`"ach"`, `"\u3164\u2800\u00ad\ufe0f \u00a0"`, "method is missing"},
		{"2026-05-31T13:00:00Z", "0000-01-01T00:00:00Z", "settledAt is in the year 0"},
		{"2026-05-31T13:00:00Z", "0001-01-01T00:00:00+01:00", "settledAt is in the year 0"},
		{"2026-05-31T13:00:00Z", "9999-12-31T23:59:59-01:00", "settledAt is in the year 10000"},
		{"2026-05-31T13:00:00Z", "10000-01-01T00:00:00Z", "read the data"},
		{"2026-05-31T12:00:00Z", "0000-01-01T00:00:00Z", "occurredAt is in the year 0"},
		{"2026-05-31T12:00:00Z", "9999-12-31T23:59:59-01:00", "occurredAt is in the year 10000"},
		{`{"type": "job", "id": "payouts"}`, `{}`, "actor.id is missing"},
		{`"payouts"`, `" "`, "actor.id is missing"},
		{`"job"`, `""`, "actor.type is missing"},
		{`{"type": "job", "id": "payouts"}`, `"payouts"`, "actor"},
	} {
		_, _, err := payloads.Open[payloads.PaymentSettled](settled(t, c.written, c.differently))
		if err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("with %s: %v, want %s", c.differently, err, c.words)
		}
	}
	for written, differently := range map[string]string{
		order: strings.ToUpper(order), `"ach"`: `"\u200bach"`, "USD": "USD", `, "actor": {"type": "job", "id": "payouts"}`: ``,
		`{"type": "job", "id": "payouts"}`: `null`, "2026-05-31T13:00:00Z": "9999-12-31T23:59:59Z",
	} {
		if _, _, err := payloads.Open[payloads.PaymentSettled](settled(t, written, differently)); err != nil {
			t.Errorf("with %s: %v", differently, err)
		}
	}
	rollup := payloads.AdDailyRollupReady{AdID: uuid.New(), StoreID: uuid.New(), Day: "0000-02-29"}
	if err := rollup.Validate(); err == nil || !strings.Contains(err.Error(), "day is in the year 0") {
		t.Errorf("a day of the year 0: %v", err)
	}
}

// Every id of every payload is held against the canonical form, in lists, too.
func TestEveryIDIsCanonical(t *testing.T) {
	t.Parallel()
	decode, met := routes(t), 0
	for _, payload := range pftest.Payloads() {
		doc := string(envelope(t, "1", payload))
		for _, part := range strings.Split(doc, `"`) {
			if id, err := uuid.Parse(part); err != nil || id.String() != part {
				continue
			}
			met++
			braces := strings.Replace(doc, part, "{"+part+"}", 1)
			if err := decode[string(payload.EventType())].Decode([]byte(braces)); err == nil || !strings.Contains(err.Error(), "must be written as "+part) {
				t.Errorf("%T with %s: %v", payload, braces, err)
			}
		}
	}
	if met == 0 {
		t.Error("no id was met")
	}
}
