package backendtest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/layouts/packfinderz"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
	"github.com/packfinderz/outbox/packfinderz/pkg/enums"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/payloads"
)

// Event is a change as it comes from Pub/Sub, or goes there.
func Event(t testing.TB, change payloads.LicenseStatusChanged) outbox.Message {
	t.Helper()
	id := uuid.New()
	data, err := json.Marshal(change)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(packfinderz.Envelope{Version: payloads.Version, EventID: id.String(), OccurredAt: time.Now(), Data: data})
	if err != nil {
		t.Fatal(err)
	}
	return outbox.Message{Attempt: 1, Event: outbox.Event{
		ID: id, Topic: publishertest.Topic, Type: string(enums.LicenseStatusChanged), AggregateType: string(enums.AggregateLicense),
		AggregateID: change.LicenseID.String(), Payload: payload,
	}}
}

// Pending is the event of a licence that was uploaded.
func Pending(t testing.TB) outbox.Message {
	t.Helper()
	return Event(t, payloads.LicenseStatusChanged{LicenseID: uuid.New(), StoreID: uuid.New(), Status: payloads.LicensePending})
}
