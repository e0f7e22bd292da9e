package registry_test

import (
	"fmt"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/registry"
)

// The registry fills in the topic of what may be published, and says why of what may not.
func ExampleNew() {
	routes, err := registry.New(registry.DefaultTopics())
	if err != nil {
		fmt.Println(err)
		return
	}
	id := uuid.MustParse("019a0000-0000-7000-8000-000000000001")
	message := outbox.Message{Event: outbox.Event{
		ID: id, Type: "ad_paused", AggregateType: "ad", AggregateID: uuid.NewString(),
		Payload: []byte(`{"version": 1, "eventId": "019a0000-0000-7000-8000-000000000001", "occurredAt": "2026-05-31T12:00:00Z", "data": {}}`),
	}}
	err = routes.Check(&message)
	fmt.Println(message.Topic, err)

	message.AggregateType = "store"
	err = routes.Check(&message)
	fmt.Println(outbox.ReasonOf(err), err)
	// Output:
	// pf-analytics-events <nil>
	// invalid_aggregate aggregate type "store" does not belong to event type "ad_paused", which has "ad"
}
