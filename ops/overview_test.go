package ops_test

import (
	"testing"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/ops"
	"github.com/packfinderz/outbox/pgstream"
)

// TestOverview counts what waits, by state and by what it is.
func TestOverview(t *testing.T) {
	t.Parallel()
	everywhere(t, func(h *harness) {
		ids := h.emit(10, nil)
		h.kill("no", ids[:3]...)
		h.emit(4, nil)
		h.exec(`ANALYZE`)
		o, err := h.outbox.Overview(h.Context())
		h.must(err)
		for state, want := range map[ops.State]int64{ops.StateDue: 4, ops.StateDead: 3, ops.StateDelivered: 7} {
			if got := o.ByState[state]; got.N != want {
				h.Errorf("%s: %+v, want %d", state, got, want)
			}
		}
		if o.Backlog.N != 4 || o.Backlog.Estimate || o.Sampled || o.OldestSeconds <= 0 || o.At.IsZero() {
			h.Errorf("the backlog: %+v", o)
		}
		is := h.outbox.Describe()
		for field, shares := range map[ops.Field][]ops.Share{ops.FieldTopic: o.ByTopic, ops.FieldType: o.ByType, ops.FieldTenant: o.ByTenant} {
			if is.Has(field) != (len(shares) == 1) || len(shares) == 1 && shares[0].Count != 4 {
				h.Errorf("by %s: %+v", field, shares)
			}
		}
	})
}

// TestOverviewRelays shows who holds events.
func TestOverviewRelays(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "modkit")
	h.emit(4, nil)
	batch, err := h.store.Claim(h.Context(), outbox.ClaimRequest{Limit: 3})
	h.must(err)
	defer batch.Abandon()
	o, err := h.outbox.Overview(h.Context())
	h.must(err)
	if len(o.Relays) != 1 || o.Relays[0].Holds != 3 || o.Relays[0].LeaseSeconds <= 0 || o.ByState[ops.StateClaimed].N != 3 || o.Backlog.N != 4 {
		h.Errorf("relays: %+v, %+v", o.Relays, o)
	}
	if claimed := h.list(ops.Filter{State: ops.StateClaimed}); len(claimed) != 3 || claimed[0].ClaimedBy != o.Relays[0].Worker {
		h.Errorf("claimed: %+v", claimed)
	}
	_, err = batch.Settle(h.Context(), []outbox.Outcome{{Kind: outbox.Delivered}, {Kind: outbox.Delivered}, {Kind: outbox.Delivered}})
	h.must(err)
}

// TestMaximumInForce shows an event that a relay gave up after its own maximum of attempts, which is not the default.
func TestMaximumInForce(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.LayoutName)
	id := h.emit(1, nil)[0]
	h.settle(func(*outbox.Message) outbox.Outcome {
		return outbox.Outcome{Kind: outbox.Died, Reason: outbox.ReasonMaxAttempts, Error: "no"}
	})
	event, err := h.outbox.Show(h.Context(), id)
	h.must(err)
	if event.Attempts != 1 || event.MaxAttempts != 1 {
		h.Errorf("%d attempts of %d, want 1 of 1", event.Attempts, event.MaxAttempts)
	}
}
