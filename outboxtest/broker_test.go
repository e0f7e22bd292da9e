package outboxtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/outboxtest"
	"github.com/packfinderz/outbox/publishertest"
)

type harness struct{ broker outboxtest.Broker }

func (h *harness) Publisher() outbox.Publisher { return &h.broker }

func (h *harness) Received(testing.TB) (list []publishertest.Received) {
	for _, m := range h.broker.Received() {
		list = append(list, publishertest.Received{ID: m.ID, Payload: m.Payload})
	}
	return list
}

func TestBroker(t *testing.T) {
	t.Parallel()
	publishertest.Run(t, publishertest.Features{Ordered: true, Binary: true}, func(*testing.T) publishertest.Harness {
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
	if outbox.Classify(errs[0]) != outbox.Down || broker.Ping(t.Context()) == nil || broker.Pings() != 1 {
		t.Errorf("a broker that is down answers %v", errs)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := broker.Wait(ctx, func(received []outbox.Message) bool { return len(received) == 99 }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting for what never comes: %v", err)
	}
}
