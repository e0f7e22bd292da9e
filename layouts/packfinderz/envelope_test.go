package packfinderz_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/layouts/packfinderz"
)

// TestEnvelope compares the envelope's JSON with the PackFinderz contract, byte for byte.
func TestEnvelope(t *testing.T) {
	t.Parallel()
	envelope := packfinderz.Envelope{
		Version:    1,
		EventID:    "01890000-0000-7000-8000-000000000000",
		OccurredAt: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC),
		Data:       json.RawMessage(`{"orderId":"1"}`),
	}
	const plain = `{"version":1,"eventId":"01890000-0000-7000-8000-000000000000",` +
		`"occurredAt":"2026-01-02T03:04:05.000006Z","data":{"orderId":"1"}}`
	const acted = `{"version":1,"eventId":"01890000-0000-7000-8000-000000000000",` +
		`"occurredAt":"2026-01-02T03:04:05.000006Z","actor":{"type":"user","id":"7"},"data":{"orderId":"1"}}`
	if got, err := json.Marshal(envelope); err != nil || string(got) != plain {
		t.Errorf("got %s (%v), want %s", got, err, plain)
	}
	envelope.Actor = &packfinderz.ActorRef{Type: "user", ID: "7"}
	got, err := json.Marshal(envelope)
	if err != nil || string(got) != acted {
		t.Errorf("got %s (%v), want %s", got, err, acted)
	}
	var back packfinderz.Envelope
	if err := json.Unmarshal(got, &back); err != nil || *back.Actor != *envelope.Actor || !back.OccurredAt.Equal(envelope.OccurredAt) {
		t.Errorf("read back as %+v (%v)", back, err)
	}
}

// TestDecodeEnvelope checks that an incomplete envelope, and data of another type, are rejected.
func TestDecodeEnvelope(t *testing.T) {
	t.Parallel()
	type order struct {
		OrderID string `json:"orderId"`
	}
	registry := outbox.Registry{"order_wrapped": {Topic: "billing", Decode: packfinderz.DecodeEnvelope(outbox.DecodeJSON[order](nil))}}
	const envelope = `{"version":1,"eventId":"e","occurredAt":"2026-01-01T00:00:00Z","data":%s}`
	for payload, good := range map[string]bool{
		fmt.Sprintf(envelope, `{"orderId":"1"}`): true,
		fmt.Sprintf(envelope, `{}`):              true,
		fmt.Sprintf(envelope, `null`):            false,
		fmt.Sprintf(envelope, `{"other":1}`):     false,
		`{"orderId":"1"}`:                        false,
		`{"version":1}`:                          false,
	} {
		err := registry.Check(&outbox.Message{Event: outbox.Event{Type: "order_wrapped", Payload: []byte(payload)}})
		if (err == nil) != good || !good && outbox.ReasonOf(err) != outbox.ReasonInvalidPayload {
			t.Errorf("%s: %v", payload, err)
		}
	}
}
