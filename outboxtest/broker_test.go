package outboxtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/wire"
	"github.com/packfinderz/outbox/outboxtest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

type harness struct{ broker outboxtest.Broker }

func (h *harness) Publisher() outbox.Publisher { return &h.broker }

func (h *harness) Received(testing.TB) (list []publishertest.Received) {
	for _, m := range h.broker.Received() {
		attributes := make(map[string]string)
		for _, a := range wire.Attributes(&m) {
			attributes[a.Name] = a.Value
		}
		list = append(list, publishertest.Received{
			ID: m.ID, Payload: m.Payload, Topic: m.Topic, Key: m.Key, Attributes: attributes, ContentType: m.ContentType,
		})
	}
	return list
}

func TestBroker(t *testing.T) {
	t.Parallel()
	features := publishertest.Features{Ordered: true, Attributes: true, Keys: true, ContentType: true, Binary: true}
	publishertest.Run(t, features, func(*testing.T) publishertest.Harness {
		return &harness{}
	})
}

func TestBrokerFails(t *testing.T) {
	t.Parallel()
	var broker outboxtest.Broker
	messages := publishertest.Messages(2)
	refused := errors.New("refused")
	broker.FailWith(func(m outbox.Message) error {
		if m.ID == messages[0].ID {
			return refused
		}
		return nil
	})
	if errs := broker.Publish(t.Context(), messages); !errors.Is(errs[0], refused) || errs[1] != nil || broker.Count(messages[1].ID) != 1 {
		t.Errorf("got %v", errs)
	}
	broker.SetDown(true)
	errs := broker.Publish(t.Context(), messages)
	if outbox.Classify(errs[0]) != outbox.ClassUnavailable || broker.Ping(t.Context()) == nil || broker.Pings() != 1 {
		t.Errorf("a broker that is down answers %v", errs)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := broker.Wait(ctx, func(received []outbox.Message) bool { return len(received) == 99 }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting for what never comes: %v", err)
	}
}
