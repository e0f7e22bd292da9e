package pgstream_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/outboxtest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/pgstream"
)

// relayTo runs a relay of the harness's stream to a broker until the test ends.
func (h *harness) relayTo(t *testing.T, broker *outboxtest.Broker, config outbox.RelayConfig) {
	t.Helper()
	config.Store, config.Publisher, config.Poll = h.open(t, pgstream.Config{}), broker, 20*time.Millisecond
	relay, err := outbox.NewRelay(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := relay.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { outboxtest.Stop(t, relay) })
}

// TestRetriesInTime has events fail one after the other, with nothing else going on. Each is
// tried again when it is due: the look for one must not forget the others.
func TestRetriesInTime(t *testing.T) {
	t.Parallel()
	h, broker := newHarness(t, pgstream.Shape{}), &outboxtest.Broker{}
	failed := make(chan struct{}, 10)
	broker.FailWith(func(m outbox.Message) error {
		if m.Attempt > 1 {
			return nil
		}
		failed <- struct{}{}
		return errors.New("not now")
	})
	// From half a second to a second each, and a moment between them.
	h.relayTo(t, broker, outbox.RelayConfig{Retry: outbox.RetryPolicy{Base: time.Second, Max: time.Second}})
	const events = 6
	for range events {
		h.Emit(t, 1)
		<-failed
		<-time.After(50 * time.Millisecond) // so that they are not due together
	}
	began := time.Now()
	awaitReceived(t, broker, events)
	// Before the look that comes every ten seconds in any case.
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("the retries took %s", took)
	}
}

// TestRetriedByHand has somebody else retry a dead event: the relay is told.
func TestRetriedByHand(t *testing.T) {
	t.Parallel()
	h, broker := newHarness(t, pgstream.Shape{}), &outboxtest.Broker{}
	dead := make(chan struct{}, 1)
	broker.FailWith(func(m outbox.Message) error {
		if m.Attempt > 1 || len(dead) > 0 {
			return nil
		}
		dead <- struct{}{}
		return outbox.Terminal(errors.New("never"))
	})
	settled := make(settles, 10)
	h.relayTo(t, broker, outbox.RelayConfig{Listen: true, Hooks: []any{settled}})
	ids := h.Emit(t, 1)
	<-settled
	other := h.open(t, pgstream.Config{})
	began := time.Now()
	if retried, err := other.Retry(t.Context(), ids...); err != nil || len(retried) != 1 {
		t.Fatal(retried, err)
	}
	awaitReceived(t, broker, 1)
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("the retry took %s", took)
	}
	<-settled // only then there is something to replay
	// Again, and by replay.
	if n, err := (pgstream.Stream{}).Replay(t.Context(), pgtest.Connect(t, h.url), pgstream.Replay{ID: ids[0]}); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	awaitReceived(t, broker, 2)
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("the replay took %s", took)
	}
}

// settles tells of settled batches.
type settles chan struct{}

func (s settles) OnSettle(outbox.BatchReport) { s <- struct{}{} }

func awaitReceived(t *testing.T, broker *outboxtest.Broker, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := await.Poll(ctx, func() bool { return len(broker.Received()) >= n }); err != nil {
		t.Fatalf("%d of %d events arrived", len(broker.Received()), n)
	}
}
