package pgstream_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/pgstream"
)

// emitAndSetBack emits events and sets the sequence back by some numbers, in one transaction: nobody can see the one without
// the other.
func (h *harness) emitAndSetBack(t *testing.T, n, back int) []uuid.UUID {
	t.Helper()
	tx, err := h.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	ids := insert(t, tx, make([]string, n)...)
	if _, err := tx.Exec(t.Context(), `SELECT setval('outbox_stream_seq', (SELECT last_value FROM outbox_stream_seq) - $1)`, back); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	return ids
}

// takeAll claims and delivers, n events at a time, until nothing comes or something is wrong.
func takeAll(t *testing.T, store *pgstream.Store, n int) (got []uuid.UUID, err error) {
	t.Helper()
	for {
		batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: n})
		if err != nil {
			return got, err
		}
		if len(batch.Messages()) == 0 {
			return got, nil
		}
		for _, message := range batch.Messages() {
			got = append(got, message.ID)
		}
		settle(t, batch, nil)
	}
}

// TestSequenceBehindEvents sets the sequence back behind events that are unread: a window that reads up to the sequence would
// leave them behind it.
func TestSequenceBehindEvents(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{Shards: 1})
	store := h.open(t, pgstream.Config{})
	emit(t, h.pool, make([]string, 10)...)
	drain(t, store)
	want := h.emitAndSetBack(t, 100, 20)
	got, err := takeAll(t, store, 30)
	if err != nil || len(got) > 0 {
		t.Errorf("%d events while the sequence is behind them: %v", len(got), err)
	}
	store.PassTime()
	if _, err := takeAll(t, store, 30); !errors.Is(err, pgstream.ErrRestored) || !strings.Contains(err.Error(), "is behind") {
		t.Errorf("a heartbeat finds %v", err)
	}
	h.repair(t, pgstream.RepairOptions{})
	if got := drain(t, store); !sameSet(got, want) {
		t.Errorf("after the repair %d events arrive, want %d", len(got), len(want))
	}
}

// TestTwoEventsWithOneNumber lets the sequence catch up before anybody looks. Whatever the size of a page, neither of two
// events with one number is passed over.
func TestTwoEventsWithOneNumber(t *testing.T) {
	t.Parallel()
	for _, page := range []int{1, 2, 3, 7, 1000} {
		h := newHarness(t, pgstream.Shape{Shards: 1})
		store := h.open(t, pgstream.Config{})
		emit(t, h.pool, make([]string, 10)...)
		drain(t, store)
		want := h.emitAndSetBack(t, 20, 10)
		want = append(want, emit(t, h.pool, make([]string, 30)...)...)
		got, err := takeAll(t, store, page)
		if !errors.Is(err, pgstream.ErrRestored) || !strings.Contains(err.Error(), "one number") {
			t.Errorf("pages of %d: after %d events: %v", page, len(got), err)
		}
		h.refused(t, "", "one number")
		h.repair(t, pgstream.RepairOptions{})
		if got = append(got, drain(t, store)...); !sameSet(got, want) {
			t.Errorf("pages of %d: %d events arrive, want %d, each once", page, len(got), len(want))
		}
	}
}

// TestTwoLateEventsWithOneNumber is the same with transactions that commit when the cursor is ahead of them.
func TestTwoLateEventsWithOneNumber(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{Shards: 1})
	store := h.open(t, pgstream.Config{})
	emit(t, h.pool, make([]string, 10)...)
	first, err := h.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Rollback(t.Context()) }()
	want := insert(t, first, make([]string, 5)...)
	pgtest.Exec(t, h.pool, `SELECT setval('outbox_stream_seq', 10)`)
	second, err := h.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = second.Rollback(t.Context()) }()
	want = append(want, insert(t, second, make([]string, 5)...)...)
	for range 3 { // until the cursor's numbers are past theirs
		emit(t, h.pool, make([]string, 10)...)
		drain(t, store)
	}
	if err := errors.Join(first.Commit(t.Context()), second.Commit(t.Context())); err != nil {
		t.Fatal(err)
	}
	got, err := takeAll(t, store, 1)
	if !errors.Is(err, pgstream.ErrRestored) || !strings.Contains(err.Error(), "one number") {
		t.Errorf("after %d events: %v", len(got), err)
	}
	h.repair(t, pgstream.RepairOptions{})
	if got = append(got, drain(t, store)...); !sameSet(got, want) {
		t.Errorf("%d events arrive, want %d, each once", len(got), len(want))
	}
}

// TestParkedTwiceUnderOneNumber fails an event, and then another one that has its number: there is one place for both.
func TestParkedTwiceUnderOneNumber(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{Shards: 1})
	store := h.open(t, pgstream.Config{})
	failed := map[uuid.UUID]outbox.Outcome{}
	fail := func() error {
		batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		defer batch.Abandon()
		list := make([]outbox.Outcome, len(batch.Messages()))
		for i, message := range batch.Messages() {
			list[i] = outbox.Outcome{Kind: outbox.Died, Reason: outbox.ReasonTerminal, Error: "no"}
			failed[message.ID] = list[i]
		}
		_, err = batch.Settle(t.Context(), list)
		return err
	}
	emit(t, h.pool, make([]string, 10)...)
	drain(t, store)
	first := emit(t, h.pool, "a")
	if err := fail(); err != nil || len(failed) != 1 {
		t.Fatalf("%d events failed: %v", len(failed), err)
	}
	// The next window begins where this one did: it reads the number again.
	pgtest.Exec(t, h.pool, `SELECT setval('outbox_stream_seq', 10)`)
	second := emit(t, h.pool, "b")
	if err := fail(); !errors.Is(err, pgstream.ErrRestored) || !strings.Contains(err.Error(), "one number") || len(failed) != 2 {
		t.Fatalf("%d events failed: %v", len(failed), err)
	}
	// Without waiting for a heartbeat.
	if batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 100}); !errors.Is(err, pgstream.ErrRestored) {
		t.Errorf("claimed %v: %v", batch, err)
	}
	h.repair(t, pgstream.RepairOptions{})
	if got := drain(t, store); !sameSet(got, second) {
		t.Errorf("after the repair %v arrive, want %v", got, second)
	}
	if n := h.count(t, `SELECT count(*) FROM outbox_parked WHERE state = 'dead' AND id = '`+first[0].String()+`'`); n != 1 {
		t.Error("the first event is not dead any more")
	}
}
