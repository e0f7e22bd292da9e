package outbox_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	engine "github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/outboxtest"
	"github.com/packfinderz/outbox/packfinderz/pkg/db/model"
	"github.com/packfinderz/outbox/packfinderz/pkg/enums"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox"
)

// The DLQ's envelope has the event's verbatim, and why it failed.
func TestDLQEnvelope(t *testing.T) {
	t.Parallel()
	text, at := "quota", time.Date(2026, 5, 31, 12, 0, 0, 0, time.UTC)
	row := model.OutboxDLQ{
		EventID: uuid.MustParse("019a0000-0000-7000-8000-000000000001"), EventType: enums.AdPaused, AggregateType: enums.AggregateAd,
		AggregateID: uuid.MustParse("019a0000-0000-7000-8000-000000000002"), PayloadJSON: json.RawMessage(`{"version":1}`),
		ErrorReason: enums.ReasonMaxAttempts, FailedAt: at.Add(time.Hour), CreatedAt: at, AttemptCount: 10, LastError: &text,
	}
	got, err := json.Marshal(outbox.NewDLQEnvelope(row))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"eventId":"019a0000-0000-7000-8000-000000000001","eventType":"ad_paused","aggregateType":"ad",` +
		`"aggregateId":"019a0000-0000-7000-8000-000000000002","payload":{"version":1},` +
		`"failure":{"reason":"max_attempts","error":"quota","attempts":10,"createdAt":"2026-05-31T12:00:00Z","failedAt":"2026-05-31T13:00:00Z"}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// What a consumer gives up can be read back from its dead-letter topic.
func TestConsumerDeadLetter(t *testing.T) {
	t.Parallel()
	letters := &outboxtest.Broker{}
	failing := &outboxtest.Broker{}
	failing.FailWith(func(engine.Message) error { return errors.New("no mail server") })
	processor, err := consume.New(consume.Config{Handlers: failing, Unknown: consume.RetryUnknown, MaxDeliveries: 3, DeadLetters: letters, DeadLetterTopic: "pf-dead"})
	if err != nil {
		t.Fatal(err)
	}
	message := engine.Message{Attempt: 3, Event: engine.Event{
		ID: uuid.New(), Topic: "pf-domain-events", Type: "ad_paused", AggregateType: "ad", AggregateID: uuid.NewString(), Payload: []byte(`{"version": 1}`),
	}}
	if verdict := processor.Process(t.Context(), consume.Delivery{Message: message}); !verdict.Ack || len(letters.Received()) != 1 {
		t.Fatalf("the verdict is %+v, and there are %d dead letters", verdict, len(letters.Received()))
	}
	got, err := outbox.ReadConsumerDeadLetter(&letters.Received()[0])
	want := outbox.ConsumerDeadLetter{
		Origin: outbox.Origin{
			EventID: message.ID, EventType: enums.AdPaused, AggregateType: enums.AggregateAd, AggregateID: message.AggregateID, Payload: message.Payload,
		},
		Failure: outbox.ConsumerFailure{Reason: consume.ReasonMaxDeliveries, Error: "no mail server", Topic: "pf-domain-events", Deliveries: 3},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v (%v)\nwant %+v", got, err, want)
	}
	if _, err := outbox.ReadConsumerDeadLetter(&message); err == nil {
		t.Error("a message that is no dead letter was read as one")
	}
	broken := letters.Received()[0]
	broken.Headers = map[string]string{consume.DeadReason: "terminal", consume.DeadDeliveries: "many"}
	if _, err := outbox.ReadConsumerDeadLetter(&broken); err == nil {
		t.Error("a number that is none was read")
	}
}
