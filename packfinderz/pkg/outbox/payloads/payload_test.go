package payloads_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/packfinderz/internal/pftest"
	"github.com/packfinderz/outbox/packfinderz/pkg/enums"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/payloads"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/registry"
)

func TestEveryEventTypeHasAPayload(t *testing.T) {
	t.Parallel()
	var types []enums.EventType
	for _, payload := range pftest.Payloads() {
		types = append(types, payload.EventType())
		if err := payload.Validate(); err != nil {
			t.Errorf("%T: %v", payload, err)
		}
	}
	if !slices.Equal(types, enums.EventTypes()) {
		t.Errorf("there are payloads of %v, and the event types are %v", types, enums.EventTypes())
	}
}

func routes(t *testing.T) outbox.Registry {
	t.Helper()
	routes, err := registry.New(registry.DefaultTopics())
	if err != nil {
		t.Fatal(err)
	}
	return routes
}

// fields is a payload as JSON has it.
func fields(t *testing.T, payload payloads.Payload) map[string]any {
	t.Helper()
	doc, err := json.Marshal(payload)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(doc, &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}

// envelope is a stored one, with a version and data.
func envelope(t *testing.T, version string, data any) []byte {
	t.Helper()
	doc, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Appendf(nil, `{"version": %s, "eventId": "x", "occurredAt": "2026-05-31T12:00:00Z", "data": %s}`, version, doc)
}

// A required field that is missing or null is an error that names it, in every payload; so is one of another type,
// which is not converted, though the decoder of a time or an id does not say which it was.
func TestRequiredFields(t *testing.T) {
	t.Parallel()
	optional := []string{"reason", "reference", "values", "userId"}
	// Nothing is a number, too, and the same as a field that is not there.
	zero := []string{"totalCents", "impressions", "clicks", "spendCents"}
	decode := routes(t)
	for _, payload := range pftest.Payloads() {
		want := func(data map[string]any, field, words string) {
			t.Helper()
			err := decode[string(payload.EventType())].Decode(envelope(t, "1", data))
			if err == nil || !strings.Contains(err.Error(), words) {
				t.Errorf("%T with %s=%v: %v", payload, field, data[field], err)
			}
		}
		for field := range fields(t, payload) {
			data := fields(t, payload)
			for _, wrong := range []any{map[string]any{"x": 1}, []any{1}, true} {
				data[field] = wrong
				want(data, field, "read the data")
			}
			if slices.Contains(optional, field) || slices.Contains(zero, field) {
				continue
			}
			data[field] = nil
			want(data, field, field)
			delete(data, field)
			want(data, field, field)
		}
	}
}

// Names are compared exactly, in the envelope, in the data, and in what is nested there: one that differs in case is another
// name for every consumer that is not written in Go. Names that nobody has are passed over.
func TestNamesAreExact(t *testing.T) {
	t.Parallel()
	decode := routes(t)
	refused := func(name string, payload payloads.Payload, doc []byte) {
		t.Helper()
		for _, by := range []string{strings.ToUpper(name), strings.ToUpper(name[:1]) + name[1:]} {
			respelt := strings.Replace(string(doc), `"`+name+`":`, `"`+by+`":`, 1)
			if respelt == string(doc) {
				t.Fatalf("%T has no %s: %s", payload, name, doc)
			}
			err := decode[string(payload.EventType())].Decode([]byte(respelt))
			if err == nil || !strings.Contains(err.Error(), `"`+by+`"; the name is "`+name+`"`) {
				t.Errorf("%T with %s: %v", payload, by, err)
			}
			both := strings.Replace(string(doc), `"`+name+`":`, `"`+by+`": null, "`+name+`":`, 1)
			if err := decode[string(payload.EventType())].Decode([]byte(both)); err == nil {
				t.Errorf("%T with %s beside %s was taken", payload, by, name)
			}
		}
	}
	nested := 0
	for _, payload := range pftest.Payloads() {
		whole := envelope(t, "1", payload)
		for field, value := range fields(t, payload) {
			refused(field, payload, whole)
			list, _ := value.([]any)
			for _, element := range list {
				inner, _ := element.(map[string]any)
				for name := range inner {
					doc := strings.Replace(string(whole), `"`+field+`":[{`, `"`+field+`":[{"`+name+`":null,`, 1)
					refused(name, payload, []byte(doc))
					nested++
				}
			}
		}
		acted := strings.Replace(string(whole), `"data"`, `"actor": {"type": "user", "id": "ada"}, "data"`, 1)
		if err := decode[string(payload.EventType())].Decode([]byte(acted)); err != nil {
			t.Errorf("%T with an actor: %v", payload, err)
		}
		for _, name := range []string{"version", "eventId", "occurredAt", "actor", "type", "id", "data"} {
			refused(name, payload, []byte(acted))
		}
	}
	if nested == 0 {
		t.Error("no nested name was met")
	}
}

// Values that make no sense are errors that name the field.
func TestRules(t *testing.T) {
	t.Parallel()
	wrong := map[string]any{
		"currency": "dollars", "amountCents": 0, "totalCents": -1, "sizeBytes": 0, "dailyBudgetCents": "500", "status": "lost",
		"channel": "pigeon", "canceledBy": "nobody", "day": "31.05.2026", "kind": " ", "licenseId": "00000000-0000-0000-0000-000000000000",
		"items": []any{}, "vendorOrders": []any{map[string]any{"lineItems": 1}}, "changed": []any{""}, "clicks": -1, "impressions": 1.5,
	}
	decode, met := routes(t), make(map[string]bool)
	for _, payload := range pftest.Payloads() {
		for field := range fields(t, payload) {
			value, ok := wrong[field]
			if !ok {
				continue
			}
			met[field] = true
			data := fields(t, payload)
			data[field] = value
			err := decode[string(payload.EventType())].Decode(envelope(t, "1", data))
			if err == nil || !strings.Contains(err.Error(), field) {
				t.Errorf("%T with %s=%v: %v", payload, field, value, err)
			}
		}
	}
	if len(met) != len(wrong) {
		t.Errorf("only %v were met", met)
	}
	state := payloads.OrderStateChanged{From: "pending", To: "pending"}
	if err := state.Validate(); err == nil || !strings.Contains(err.Error(), "both") {
		t.Errorf("a change to the same: %v", err)
	}
	for _, payload := range pftest.Payloads() {
		ad, ok := payload.(payloads.AdCreated)
		if !ok {
			continue
		}
		if ad.EndsAt = ad.StartsAt; ad.Validate() == nil {
			t.Error("an ad that ends when it starts was taken")
		}
	}
}

// Only version 1 is known, and an envelope must be whole.
func TestEnvelopes(t *testing.T) {
	t.Parallel()
	if _, _, err := payloads.Open[payloads.AdPaused](envelope(t, "1", map[string]any{})); err != nil {
		t.Errorf("an envelope as it should be: %v", err)
	}
	for _, version := range []string{"0", "2", "-1", `"1"`, "1.5", "null"} {
		if _, _, err := payloads.Open[payloads.AdPaused](envelope(t, version, map[string]any{})); err == nil {
			t.Errorf("version %s was taken", version)
		}
	}
	for _, stored := range []string{
		``, `null`, `{}`, `[]`, `{"version": 1}`, `{"version": 1, "eventId": "x", "occurredAt": "2026-05-31T12:00:00Z"}`,
		`{"version": 1, "eventId": "x", "data": {}}`, `{"version": 1, "occurredAt": "2026-05-31T12:00:00Z", "data": {}}`,
	} {
		if _, _, err := payloads.Open[payloads.AdPaused]([]byte(stored)); err == nil {
			t.Errorf("%s was taken for an envelope", stored)
		}
	}
}
