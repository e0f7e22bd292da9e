package outbox_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/packfinderz/outbox"
)

// TestEnvelope holds the envelope's JSON against the PackFinderz contract, byte for byte.
func TestEnvelope(t *testing.T) {
	t.Parallel()
	envelope := outbox.Envelope{
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
	envelope.Actor = &outbox.ActorRef{Type: "user", ID: "7"}
	got, err := json.Marshal(envelope)
	if err != nil || string(got) != acted {
		t.Errorf("got %s (%v), want %s", got, err, acted)
	}
	var back outbox.Envelope
	if err := json.Unmarshal(got, &back); err != nil || *back.Actor != *envelope.Actor || !back.OccurredAt.Equal(envelope.OccurredAt) {
		t.Errorf("read back as %+v (%v)", back, err)
	}
}
