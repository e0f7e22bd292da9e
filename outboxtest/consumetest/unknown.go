package consumetest

import (
	"testing"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume"
	"github.com/packfinderz/outbox/destinations/handlers"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

// testUnknown has a topic that is shared: an event that nobody here handles stands before one that is
// handled, of another key.
func testUnknown(unknown consume.Unknown) func(*testing.T, Harness) {
	return func(t *testing.T, h Harness) {
		t.Helper()
		done, told := NewRecord(), make(Reports, 100)
		known, err := handlers.New(handlers.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if err := known.Register("order_created", "test", done.Handle); err != nil {
			t.Fatal(err)
		}
		process := Quickly(known)
		process.Unknown, process.MaxDeliveries, process.Hooks = unknown, 1000, []any{told}
		sent := Events(2, 2)
		sent[0].Type = "stock_counted"
		h.Publish(t, "plain", sent)
		running := Start(t, h.Consumer(t, Options{Process: process, DeadLetters: true}))
		done.Await(t, 1)
		switch unknown {
		case consume.IgnoreUnknown:
			told.Next(t, consume.Ignored)
		case consume.DeadLetterUnknown:
			told.Next(t, consume.DeadLetter)
		case consume.RetryUnknown:
			told.Next(t, consume.Again)
			// Its handler is there now: the next delivery is handled.
			if err := known.Otherwise("late", done.Handle); err != nil {
				t.Fatal(err)
			}
			done.Await(t, 2)
		}
		running.Stop()
		if n := h.Unsettled(t); n != 0 {
			t.Errorf("%d messages are unsettled", n)
		}
		wantLetters(t, h.Letters(t), unknown, &sent[0])
		if list := done.All(); list[0].ID != sent[1].ID {
			t.Errorf("handled first: %+v", list[0])
		}
	}
}

// wantLetters wants a dead letter of the unknown event if it is to be one, and none otherwise.
func wantLetters(t *testing.T, letters []publishertest.Received, unknown consume.Unknown, event *outbox.Message) {
	t.Helper()
	if unknown != consume.DeadLetterUnknown {
		if len(letters) > 0 {
			t.Errorf("dead letters: %+v", letters)
		}
		return
	}
	if len(letters) != 1 || letters[0].Attributes["event_id"] != event.ID.String() ||
		letters[0].Attributes[consume.DeadReason] != string(outbox.ReasonUnknownType) || letters[0].Attributes[consume.DeadDeliveries] != "1" {
		t.Errorf("dead letters: %+v", letters)
	}
}
