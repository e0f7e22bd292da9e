package pgstream_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/pgtest"
	"github.com/packfinderz/outbox/pgstream"
)

// resetSequence sets the sequence back to 10 and lets producers draw 100: when anybody looks, it has caught up.
func (h *harness) resetSequence(t *testing.T) []uuid.UUID {
	t.Helper()
	pgtest.Exec(t, h.pool, `SELECT setval('outbox_stream_seq', 10)`)
	return emit(t, h.pool, make([]string, 100)...)
}

// passOver claims once, which passes over events, and then until a heartbeat finds that. It returns what it got.
func passOver(t *testing.T, store *pgstream.Store) (got []uuid.UUID) {
	t.Helper()
	for {
		batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		if len(batch.Messages()) == 0 {
			break
		}
		for _, message := range batch.Messages() {
			got = append(got, message.ID)
		}
		settle(t, batch, nil)
	}
	store.PassTime()
	batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 100})
	if !errors.Is(err, pgstream.ErrRestored) || !strings.Contains(err.Error(), "set back") {
		t.Fatalf("after %d events a heartbeat claims %v: %v", len(got), batch, err)
	}
	return got
}

// TestSequenceSetBackUnderARelay sets the sequence back between two windows of a running relay.
func TestSequenceSetBackUnderARelay(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{Shards: 1})
	store := h.open(t, pgstream.Config{})
	for range 3 { // until the cursor's numbers are those of events
		emit(t, h.pool, make([]string, 30)...)
		drain(t, store)
	}
	want := h.resetSequence(t)
	got := passOver(t, store)
	if len(got) >= len(want) {
		t.Fatalf("%d of %d events arrived: nothing was passed over", len(got), len(want))
	}
	// It goes on refusing, also with more windows' worth of events.
	want = append(want, emit(t, h.pool, make([]string, 30)...)...)
	if _, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 100}); !errors.Is(err, pgstream.ErrRestored) {
		t.Errorf("claimed although events were passed over: %v", err)
	}
	h.refused(t, "", "set back")
	h.repair(t, pgstream.RepairOptions{})
	// The running store goes on by itself.
	got = append(got, drain(t, store)...)
	for _, id := range want {
		if !slices.Contains(got, id) {
			t.Errorf("%s was lost", id)
		}
	}
	want = emit(t, h.pool, "a", "b")
	if got := drain(t, store); !sameSet(got, want) {
		t.Errorf("after the repair %v arrive, want %v", got, want)
	}
	store.PassTime()
	if got := drain(t, store); len(got) > 0 {
		t.Errorf("%v come again", got)
	}
}

// TestSequenceSetBackWithoutARelay is the same while nobody reads: whoever starts next finds it.
func TestSequenceSetBackWithoutARelay(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{Shards: 1})
	store := h.open(t, pgstream.Config{})
	for range 3 {
		emit(t, h.pool, make([]string, 30)...)
		drain(t, store)
	}
	store.Close()
	want := h.resetSequence(t)
	h.refused(t, "", "set back")
	pgtest.Exec(t, h.pool, `SELECT setval('outbox_stream_seq', 100000)`)
	h.refused(t, "", "set back")
	h.repair(t, pgstream.RepairOptions{})
	if got := drain(t, h.open(t, pgstream.Config{})); !sameSet(got, want) {
		t.Errorf("after the repair %d events arrive, want %d", len(got), len(want))
	}
}

// TestSequenceBehindOpensNothing polls while the sequence is behind: the window waits for the repair.
func TestSequenceBehindOpensNothing(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{Shards: 1})
	store := h.open(t, pgstream.Config{})
	for range 2 { // now the cursor's q1 is 30 and its hi is 60
		emit(t, h.pool, make([]string, 30)...)
		drain(t, store)
	}
	if n := h.count(t, `SELECT count(*) FROM outbox_shards WHERE q1 < 40 AND hi = 60`); n != 1 {
		t.Fatal("the cursor is not where the test needs it")
	}
	// Nothing is left of the events behind which the sequence is.
	pgtest.Exec(t, h.pool, `DELETE FROM outbox_stream WHERE seq > 40`)
	pgtest.Exec(t, h.pool, `SELECT setval('outbox_stream_seq', 40)`)
	want := emit(t, h.pool, "a")
	// Old enough for a window to be opened for no other reason.
	pgtest.Exec(t, h.pool, `UPDATE outbox_shards SET opened_at = opened_at - interval '1 hour'`)
	if batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 100}); err != nil || len(batch.Messages()) > 0 {
		t.Errorf("claimed %v while the sequence is behind: %v", batch, err)
	}
	if n := h.count(t, `SELECT count(*) FROM outbox_shards WHERE s2 IS NOT NULL OR hi < 60`); n > 0 {
		t.Error("a window was opened while the sequence is behind")
	}
	h.refused(t, "", "is behind")
	h.repair(t, pgstream.RepairOptions{})
	if got := drain(t, store); !sameSet(got, want) {
		t.Errorf("after the repair %v arrive, want %v", got, want)
	}
}

// TestTruncateIsRefused tries every way to empty the log past the rotation.
func TestTruncateIsRefused(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{Shards: 1})
	want := emit(t, h.pool, "a", "b")
	for _, sql := range []string{
		`TRUNCATE outbox_stream`, `TRUNCATE outbox_stream RESTART IDENTITY`, `TRUNCATE outbox_stream CASCADE`,
		`TRUNCATE outbox_stream RESTART IDENTITY CASCADE`, `TRUNCATE outbox_stream_0`, `TRUNCATE outbox_stream_7 RESTART IDENTITY`,
	} {
		_, err := h.pool.Exec(t.Context(), sql)
		if err == nil || !strings.Contains(err.Error(), "not truncated") {
			t.Errorf("%s: %v", sql, err)
		}
	}
	if n := h.count(t, `SELECT count(*) FROM pg_depend WHERE objid = 'outbox_stream_seq'::regclass AND deptype IN ('a', 'i')`); n > 0 {
		t.Error("the sequence belongs to a column: RESTART IDENTITY would set it back")
	}
	if got := drain(t, h.open(t, pgstream.Config{})); !sameSet(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
