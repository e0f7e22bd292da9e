package packfinderz_test

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/layouts/packfinderz"
)

func ExampleEnvelope() {
	doc, err := json.Marshal(packfinderz.Envelope{
		Version: 1, EventID: uuid.Nil.String(), OccurredAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Actor: &packfinderz.ActorRef{Type: "user", ID: "7"}, Data: json.RawMessage(`{"orderId":"1"}`),
	})
	fmt.Println(string(doc), err)
	// Output:
	// {"version":1,"eventId":"00000000-0000-0000-0000-000000000000","occurredAt":"2026-01-02T03:04:05Z","actor":{"type":"user","id":"7"},"data":{"orderId":"1"}} <nil>
}
