package registry_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/packfinderz/internal/pftest"
	"github.com/packfinderz/outbox/packfinderz/pkg/enums"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/payloads"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/registry"
)

func routes(t *testing.T, topics registry.Topics) outbox.Registry {
	t.Helper()
	routes, err := registry.New(topics)
	if err != nil {
		t.Fatal(err)
	}
	return routes
}

// The contract's table, written out once more: a route that changes has to be changed here, too.
func contract() map[string]string {
	return map[string]string{
		"order_created": "checkout_group domain", "order_state_changed": "vendor_order domain",
		"line_item_state_changed": "vendor_order domain", "order_expired": "vendor_order domain", "order_canceled": "vendor_order domain",
		"reservation_released": "vendor_order domain", "license_status_changed": "license domain", "media_uploaded": "media domain",
		"payment_settled": "ledger_event billing", "cash_collected": "ledger_event billing", "vendor_payout_recorded": "ledger_event billing",
		"notification_requested": "notification notifications",
		"ad_created":             "ad analytics", "ad_updated": "ad analytics", "ad_paused": "ad analytics",
		"ad_activated": "ad analytics", "ad_expired": "ad analytics", "ad_daily_rollup_ready": "ad analytics",
	}
}

// Every value of the enum has exactly one topic, its aggregate and a decoder, and nothing else has one.
func TestRegistryIsExhaustive(t *testing.T) {
	t.Parallel()
	got := routes(t, registry.Topics{Domain: "domain", Analytics: "analytics", Notifications: "notifications", Billing: "billing"})
	if len(got) != len(enums.EventTypes()) {
		t.Errorf("%d routes for %d event types", len(got), len(enums.EventTypes()))
	}
	for _, eventType := range enums.EventTypes() {
		route, known := got[string(eventType)]
		if !known || route.Decode == nil {
			t.Errorf("%s has no route or no decoder", eventType)
			continue
		}
		if route.AggregateType == "" || route.Topic == "" {
			t.Errorf("%s goes to %+v", eventType, route)
		}
	}
	// The backend may have more.
	for eventType, want := range contract() {
		if now := got[eventType].AggregateType + " " + got[eventType].Topic; now != want {
			t.Errorf("%s goes to %s, want %s", eventType, now, want)
		}
	}
}

// The environment renames topics; which event belongs to which does not change.
func TestRenamingATopicReroutesNothing(t *testing.T) {
	t.Parallel()
	before := routes(t, registry.DefaultTopics())
	renamed := registry.DefaultTopics()
	renamed.Billing = "money"
	after := routes(t, renamed)
	for eventType, route := range before {
		want := route.Topic
		if want == registry.DefaultTopics().Billing {
			want = "money"
		}
		if got := after[eventType]; got.Topic != want || got.AggregateType != route.AggregateType {
			t.Errorf("%s went to %s, and goes to %s", eventType, route.Topic, got.Topic)
		}
	}
}

func TestTopicNames(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "ab", "a b", "1st", "-x-", "google", "projects/p/topics/t", strings.Repeat("x", 256)} {
		topics := registry.DefaultTopics()
		topics.Analytics = bad
		if _, err := registry.New(topics); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// message is a row of an event type, with data.
func message(eventType enums.EventType, aggregate, data string) *outbox.Message {
	id := uuid.New()
	payload := fmt.Appendf(nil, `{"version": 1, "eventId": %q, "occurredAt": "2026-05-31T12:00:00Z", "data": %s}`, id, data)
	return &outbox.Message{Event: outbox.Event{
		ID: id, Type: string(eventType), AggregateType: aggregate, AggregateID: uuid.NewString(), Payload: payload,
	}}
}

// row is a message about the aggregate that the payload names.
func row(payload payloads.Payload, aggregate, data string) *outbox.Message {
	m := message(payload.EventType(), aggregate, data)
	m.AggregateID = pftest.AggregateOf(payload).String()
	return m
}

// Every valid payload passes, with fields that nobody knows yet, too; none passes as another type's, or without data.
func TestRegistryChecksPayloads(t *testing.T) {
	t.Parallel()
	got := routes(t, registry.DefaultTopics())
	for _, payload := range pftest.Payloads() {
		eventType := payload.EventType()
		aggregate := got[string(eventType)].AggregateType
		data, err := json.Marshal(payload)
		if err != nil {
			t.Fatal(err)
		}
		for _, data := range []string{string(data), strings.Replace(string(data), "{", `{"fromTheFuture":[1],`, 1)} {
			data = strings.Replace(data, ",}", "}", 1)
			if err := got.Check(row(payload, aggregate, data)); err != nil {
				t.Errorf("%s with %s: %v", eventType, data, err)
			}
		}
		for _, none := range []string{"null", `"text"`, "[]", "7"} {
			wantReason(t, got.Check(message(eventType, aggregate, none)), outbox.ReasonInvalidPayload, eventType)
		}
		wantReason(t, got.Check(message(eventType, "store", string(data))), outbox.ReasonInvalidAggregate, eventType)
		wantReason(t, got.Check(message(eventType, "", string(data))), outbox.ReasonInvalidAggregate, eventType)
		own := pftest.AggregateOf(payload).String()
		for _, nobody := range []string{"", uuid.Nil.String(), "nobody", "{" + own + "}", "urn:uuid:" + own, strings.ReplaceAll(own, "-", "")} {
			m := row(payload, aggregate, string(data))
			m.AggregateID = nobody
			wantReason(t, got.Check(m), outbox.ReasonInvalidAggregate, eventType)
		}
	}
	wantReason(t, got.Check(message("order_teleported", "vendor_order", "{}")), outbox.ReasonUnknownType, "order_teleported")
}

// wantReason wants an error that no retry can mend.
func wantReason(t *testing.T, err error, want outbox.Reason, eventType enums.EventType) {
	t.Helper()
	if err == nil || outbox.Classify(err) != outbox.ClassTerminal || outbox.ReasonOf(err) != want {
		t.Errorf("%s: %v, want %s", eventType, err, want)
	}
}

// An empty object is data; what must be in it is the type's own rule.
func TestEmptyDataIsNotNull(t *testing.T) {
	t.Parallel()
	got := routes(t, registry.DefaultTopics())
	for _, eventType := range []enums.EventType{enums.AdPaused, enums.AdActivated} {
		if err := got.Check(message(eventType, "ad", "{}")); err != nil {
			t.Errorf("%s: %v", eventType, err)
		}
	}
	wantReason(t, got.Check(message(enums.OrderExpired, "vendor_order", "{}")), outbox.ReasonInvalidPayload, enums.OrderExpired)
}

// The envelope is that of the event: its id is the row's, and the row has one. Nothing else is published, whatever the type.
func TestRegistryHoldsTheEnvelopeAgainstTheRow(t *testing.T) {
	t.Parallel()
	got := routes(t, registry.DefaultTopics())
	for _, payload := range pftest.Payloads() {
		eventType := payload.EventType()
		data, err := json.Marshal(payload)
		if err != nil {
			t.Fatal(err)
		}
		right := func() *outbox.Message { return row(payload, got[string(eventType)].AggregateType, string(data)) }
		other := right()
		other.ID = uuid.New()
		wantReason(t, got.Check(other), outbox.ReasonInvalidPayload, eventType)
		braces := right()
		braces.Payload = []byte(strings.Replace(string(braces.Payload), braces.ID.String(), "{"+braces.ID.String()+"}", 1))
		wantReason(t, got.Check(braces), outbox.ReasonInvalidPayload, eventType)
		nobody := right()
		nobody.Payload = []byte(strings.Replace(string(nobody.Payload), nobody.ID.String(), uuid.Nil.String(), 1))
		nobody.ID = uuid.Nil
		wantReason(t, got.Check(nobody), outbox.ReasonInvalidRow, eventType)
	}
}

// An event is about one aggregate: the row's is the one that its data names, if that names one.
func TestRegistryHoldsTheAggregateAgainstTheData(t *testing.T) {
	t.Parallel()
	got, named := routes(t, registry.DefaultTopics()), 0
	for _, payload := range pftest.Payloads() {
		data, err := json.Marshal(payload)
		if err != nil {
			t.Fatal(err)
		}
		m := row(payload, got[string(payload.EventType())].AggregateType, string(data))
		m.AggregateID = strings.ToUpper(m.AggregateID) // the same id, as a column of text may have it
		if err := got.Check(m); err != nil {
			t.Errorf("%T in capitals: %v", payload, err)
		}
		if payload.AggregateID() == uuid.Nil {
			continue
		}
		named++
		m.AggregateID = uuid.NewString()
		wantReason(t, got.Check(m), outbox.ReasonInvalidAggregate, payload.EventType())
	}
	if named == 0 {
		t.Error("no payload names its aggregate")
	}
}

// A layout of the team's own has to take all that the backend emits; one that names no values takes everything.
func TestCheckValues(t *testing.T) {
	t.Parallel()
	if err := registry.CheckValues(registry.Layout()); err != nil {
		t.Error(err)
	}
	layout := registry.Layout()
	layout.Columns.Type.Values = layout.Columns.Type.Values[1:]
	if err := registry.CheckValues(layout); err == nil || !strings.Contains(err.Error(), "order_created") {
		t.Errorf("without order_created: %v", err)
	}
	layout.Columns.Type.Values = nil
	if err := registry.CheckValues(layout); err != nil {
		t.Error(err)
	}
}
