package outboxtest_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/layouttest"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/outboxtest"
	"github.com/packfinderz/outbox/pgstream"
)

// TestDrain delivers what is committed, and of that only what was not delivered before.
func TestDrain(t *testing.T) {
	t.Parallel()
	pool := stream(t)
	later := outbox.Event{Type: "order.reminded", NotBefore: time.Now().Add(time.Hour), Payload: []byte(`{}`)}
	emit(t, pool, pgstream.Stream{}, placed, paid, later)
	if err := emitIn(t.Context(), begin(t, pool), pgstream.Stream{}, placed); err != nil { // never committed
		t.Fatal(err)
	}
	broker := &outboxtest.Broker{}
	for _, want := range [][]string{{"order.placed", "order.paid"}, nil} {
		if have := types(outboxtest.Drain(t, pool, pgstream.Stream{}, broker)); !slices.Equal(have, want) {
			t.Errorf("delivered %v, want %v", have, want)
		}
	}
	emit(t, pool, pgstream.Stream{}, paid)
	if have := types(outboxtest.Drain(t, pool, pgstream.Stream{}, broker)); len(have) != 1 {
		t.Errorf("delivered %v, want one event", have)
	}
	if received := broker.Received(); len(received) != 3 {
		t.Errorf("the broker has %v, want three messages", types(received))
	}
}

// TestDrainTables delivers the events of every shipped layout.
func TestDrainTables(t *testing.T) {
	t.Parallel()
	forEachLayout(t, func(t *testing.T, pool *pgxpool.Pool, layout layouts.Layout) {
		t.Helper()
		emit(t, pool, layout, layouttest.Event(layout.Name), layouttest.Event(layout.Name))
		if have := outboxtest.Drain(t, pool, layout, &outboxtest.Broker{}); len(have) != 2 {
			t.Errorf("delivered %d events, want 2", len(have))
		}
	})
}

// TestDrainFailures repeats what failed, and leaves out what is dead.
func TestDrainFailures(t *testing.T) {
	t.Parallel()
	pool := stream(t)
	emit(t, pool, pgstream.Stream{}, placed, paid)
	broker, attempts := &outboxtest.Broker{}, 0
	broker.FailWith(func(m outbox.Message) error {
		if m.Type == "order.placed" {
			return outbox.Terminal(errors.New("no such order"))
		}
		if attempts++; attempts < 3 {
			return errors.New("try again")
		}
		return nil
	})
	have := outboxtest.Drain(t, pool, pgstream.Stream{}, broker)
	if len(have) != 1 || have[0].Type != "order.paid" || have[0].Attempt != 3 {
		t.Errorf("delivered %v, want order.paid at its third attempt", types(have))
	}
}

// TestDrainGivesUp says what is left, and why.
func TestDrainGivesUp(t *testing.T) {
	t.Parallel()
	pool := stream(t)
	emit(t, pool, pgstream.Stream{}, placed, paid)
	broker := &outboxtest.Broker{}
	broker.SetDown(true)
	said := failure(t, func(t *failing) { outboxtest.DrainWithin(t, time.Second, pool, pgstream.Stream{}, broker) })
	for _, words := range []string{"not everything was settled within 1s", "Left are 2 due", outboxtest.ErrDown.Error()} {
		if !strings.Contains(said, words) {
			t.Errorf("said %q, want %q in it", said, words)
		}
	}
	if said := failure(t, func(t *failing) { outboxtest.Drain(t, pool, nil, broker) }); !strings.Contains(said, "is no target") {
		t.Errorf("said %q", said)
	}
	if said := failure(t, func(t *failing) { outboxtest.Drain(t, pool, pgstream.Stream{}, nil) }); !strings.Contains(said, "Publisher is missing") {
		t.Errorf("said %q", said)
	}
	broker.SetDown(false)
	if have := outboxtest.Drain(t, pool, pgstream.Stream{}, broker); len(have) != 2 {
		t.Errorf("delivered %v after the outage, want both events", types(have))
	}
}

func types(messages []outbox.Message) (list []string) {
	for i := range messages {
		list = append(list, messages[i].Type)
	}
	return list
}
