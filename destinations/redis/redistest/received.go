package redistest

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

// page is how many entries are read at once.
const page = 5000

// Received is all that is in the stream publishertest.Topic, in order.
func (b *Broker) Received(t testing.TB) []publishertest.Received {
	t.Helper()
	return b.ReceivedIn(t, publishertest.Topic)
}

// ReceivedIn is all that is in a stream, in order.
func (b *Broker) ReceivedIn(t testing.TB, stream string) []publishertest.Received {
	t.Helper()
	var all []publishertest.Received
	for from := "-"; ; {
		entries, err := b.client.XRangeN(context.Background(), stream, from, "+", page).Result()
		if err != nil {
			t.Fatal(fmt.Errorf("reading the stream %s: %w", stream, err))
		}
		for _, entry := range entries {
			all = append(all, received(t, stream, entry.Values))
			from = "(" + entry.ID
		}
		if len(entries) < page {
			return all
		}
	}
}

func received(t testing.TB, stream string, values map[string]any) publishertest.Received {
	t.Helper()
	r := publishertest.Received{Topic: stream, Attributes: make(map[string]string)}
	for name, value := range values {
		text, ok := value.(string)
		if !ok {
			t.Fatalf("the field %s is a %T", name, value)
		}
		switch name {
		case "payload":
			r.Payload = []byte(text)
		case "key":
			r.Key = text
		default:
			r.Attributes[name] = text
		}
	}
	id := r.Attributes["event_id"]
	if id == "" {
		id = r.Attributes["ce_id"]
	}
	var err error
	if r.ID, err = uuid.Parse(id); err != nil {
		t.Fatal(fmt.Errorf("an entry's event id: %w", err))
	}
	return r
}
