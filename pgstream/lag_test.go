package pgstream_test

import (
	"testing"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/pgstream"
)

func TestLag(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{Shards: 2})
	store := h.open(t, pgstream.Config{})
	emit(t, h.pool, make([]string, 20)...)
	open, err := h.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = open.Rollback(t.Context()) }()
	insert(t, open, "open")
	lag := func() *pgstream.Lag {
		t.Helper()
		lag, err := pgstream.Stream{}.Lag(t.Context(), h.pool, "default")
		if err != nil || len(lag.Shards) != 2 {
			t.Fatalf("the lag is %+v: %v", lag, err)
		}
		return lag
	}
	before := lag()
	if n := before.Shards[0].Events + before.Shards[1].Events; n != 20 || before.Shards[0].Seconds <= 0 || before.Shards[0].Owner != "" {
		t.Errorf("twenty unread: %+v", before.Shards)
	}
	if before.OldestTransaction == nil || before.OldestTransaction.Seconds <= 0 {
		t.Errorf("the open transaction is not seen: %+v", before.OldestTransaction)
	}
	batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 100})
	if err != nil || len(batch.Messages()) != 20 {
		t.Fatalf("claimed %d: %v", len(batch.Messages()), err)
	}
	during := lag()
	if during.Shards[0].WindowSeconds <= 0 || during.Shards[0].Owner != store.WorkerID().String() || during.Shards[0].LeaseSeconds <= 0 ||
		len(during.Relays) != 1 || during.Relays[0].Worker != store.WorkerID().String() {
		t.Errorf("while a page is out: %+v, %+v", during.Shards[0], during.Relays)
	}
	outcomes := make([]outbox.Outcome, 20)
	for i := range outcomes {
		outcomes[i].Kind = outbox.Delivered
	}
	outcomes[3] = outbox.Outcome{Kind: outbox.Failed, Error: "no"}
	outcomes[5] = outbox.Outcome{Kind: outbox.Died, Error: "no", Reason: outbox.ReasonTerminal}
	if _, err := batch.Settle(t.Context(), outcomes); err != nil {
		t.Fatal(err)
	}
	batch.Abandon()
	after := lag()
	if after.Shards[0].Events+after.Shards[1].Events != 0 || after.Parked["retry"] != 1 || after.Parked["dead"] != 1 {
		t.Errorf("afterwards: %+v", after)
	}
}
