package pgstream_test

import (
	"errors"
	"testing"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/pgstream"
)

// TestWait is a relay whose destination takes nothing: it is known, leaves its shards to others, and hears of what happens to
// its subscription.
func TestWait(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{})
	stream := pgstream.Stream{}
	var altered []string
	changed := func(_, is pgstream.Subscription) { altered = append(altered, is.Destination) }
	waits := h.open(t, pgstream.Config{Lease: time.Hour, Changed: changed})
	emit(t, h.pool, "a")
	drain(t, waits)
	if n := h.count(t, `SELECT count(*) FROM outbox_shards WHERE owner IS NOT NULL`); n != 8 {
		t.Fatalf("it has %d shards", n)
	}
	if err := waits.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	lag, err := stream.Lag(t.Context(), h.pool, pgstream.DefaultSubscription)
	if err != nil || len(lag.Relays) != 1 || !lag.Relays[0].Waits {
		t.Errorf("the relays are %+v: %v", lag.Relays, err)
	}
	if err := stream.DropSubscription(t.Context(), h.pool, pgstream.DefaultSubscription); !errors.Is(err, pgstream.ErrSubscriptionServed) {
		t.Errorf("dropped under a relay that waits: %v", err)
	}
	// Another one takes all, at once.
	other := h.open(t, pgstream.Config{Lease: time.Hour})
	want := emit(t, h.pool, make([]string, 50)...)
	if got := drain(t, other); !sameSet(got, want) {
		t.Errorf("%d events arrive at the other relay, want %d", len(got), len(want))
	}
	other.Close()
	// It goes on where it may.
	_, err = stream.AlterSubscription(t.Context(), h.pool, pgstream.DefaultSubscription, func(s *pgstream.Subscription) { s.Destination = "discard:" })
	if err != nil {
		t.Fatal(err)
	}
	if err := waits.Wait(t.Context()); err != nil || len(altered) != 1 || altered[0] != "discard:" {
		t.Errorf("it heard of destinations %v: %v", altered, err)
	}
	want = emit(t, h.pool, make([]string, 50)...)
	if got := drain(t, waits); !sameSet(got, want) {
		t.Errorf("%d events arrive afterwards, want %d", len(got), len(want))
	}
	lag, err = stream.Lag(t.Context(), h.pool, pgstream.DefaultSubscription)
	if err != nil || len(lag.Relays) != 1 || lag.Relays[0].Waits {
		t.Errorf("the relays are %+v: %v", lag.Relays, err)
	}
	if err := waits.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := stream.DropSubscription(t.Context(), h.pool, pgstream.DefaultSubscription, pgstream.Forced()); err != nil {
		t.Fatal(err)
	}
	if err := waits.Wait(t.Context()); !errors.Is(err, outbox.ErrGone) {
		t.Errorf("it waits for a subscription that is gone: %v", err)
	}
}
