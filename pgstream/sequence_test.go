package pgstream_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/pgstream"
)

// resetSequence sets the sequence back to 10 and lets producers draw 100: when anybody looks, it has caught up.
func (h *harness) resetSequence(t *testing.T) []uuid.UUID {
	t.Helper()
	pgtest.Exec(t, h.pool, `SELECT setval('outbox_stream_seq', 10)`)
	return emit(t, h.pool, make([]string, 100)...)
}

// passOver claims as a relay does over a sequence that was set back, until a heartbeat finds that. It returns what it got.
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

// settled is a stream of one shard whose cursor's numbers are those of events, and its store.
func settled(t *testing.T, url string) (*harness, *pgstream.Store) {
	t.Helper()
	h := newHarnessOn(t, url, pgstream.Shape{Shards: 1})
	store := h.open(t, pgstream.Config{})
	for range 3 {
		emit(t, h.pool, make([]string, 30)...)
		drain(t, store)
	}
	return h, store
}

// mended repairs the stream, unless it says that there is nothing to repair, and takes what a store gets then.
func (h *harness) mended(t *testing.T, got []uuid.UUID) []uuid.UUID {
	t.Helper()
	h.repair(t, pgstream.RepairOptions{})
	return append(got, drain(t, h.open(t, pgstream.Config{}))...)
}

// wantAll demands that each event has arrived, once or more often.
func wantAll(t *testing.T, got, want []uuid.UUID) {
	t.Helper()
	lost := 0
	for _, id := range want {
		if !slices.Contains(got, id) {
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("%d of %d events were lost", lost, len(want))
	}
}

// TestSequenceSetBackBeforeTheHeartbeat ends the store, in every way, after it has met a sequence that was set back, and before
// a heartbeat could note that.
func TestSequenceSetBackBeforeTheHeartbeat(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*harness, *pgstream.Store){
		"stopped": func(_ *harness, store *pgstream.Store) { store.Close() },
		"killed": func(h *harness, _ *pgstream.Store) {
			pgtest.Exec(t, h.pool, `UPDATE outbox_shards SET owner = NULL, locked_until = NULL, fence = fence + 1`)
		},
		"repaired at once": func(*harness, *pgstream.Store) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, store := settled(t, pgtest.URL(t))
			want := h.resetSequence(t)
			got, err := takeAll(t, store, 100)
			if err != nil && !errors.Is(err, pgstream.ErrRestored) {
				t.Fatal(err)
			}
			end(h, store)
			wantAll(t, h.mended(t, got), want)
		})
	}
}

// TestTransactionAcrossASetBack has a transaction that began before the last window, and draws its numbers after the sequence
// was set back.
func TestTransactionAcrossASetBack(t *testing.T) {
	t.Parallel()
	// Other transactions of the server would make the store look for late events.
	server := pgtest.Server(t, map[string]string{"autovacuum": "off"})
	h, store := settled(t, server.URL("postgres"))
	tx, err := h.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), `SELECT pg_current_xact_id()`); err != nil {
		t.Fatal(err)
	}
	emit(t, h.pool, make([]string, 30)...)
	drain(t, store)
	pgtest.Exec(t, h.pool, `SELECT setval('outbox_stream_seq', 70)`)
	want := insert(t, tx, make([]string, 5)...)
	pgtest.Exec(t, h.pool, `SELECT setval('outbox_stream_seq', 500)`)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	want = append(want, emit(t, h.pool, "a")...) // which would open a window
	got, err := takeAll(t, store, 100)
	if err != nil && !errors.Is(err, pgstream.ErrRestored) {
		t.Fatal(err)
	}
	store.PassTime()
	more, err := takeAll(t, store, 100)
	if err != nil && !errors.Is(err, pgstream.ErrRestored) {
		t.Fatal(err)
	}
	store.Close()
	wantAll(t, h.mended(t, append(got, more...)), want)
}

// TestRotationOfMissingCursors takes the cursors of a subscription away: what it has not read stays.
func TestRotationOfMissingCursors(t *testing.T) {
	t.Parallel()
	h := newHarness(t, pgstream.Shape{Shards: 2, Slots: 3, SlotLength: time.Second})
	if err := (pgstream.Stream{}).CreateSubscription(t.Context(), h.pool, pgstream.Subscription{Name: "other"}, pgstream.StartOldest); err != nil {
		t.Fatal(err)
	}
	want := emit(t, h.pool, make([]string, 20)...)
	store := h.open(t, pgstream.Config{})
	drain(t, store)
	pgtest.Exec(t, h.pool, `DELETE FROM outbox_shards WHERE subscription = 'other'`)
	const now = `SELECT floor(extract(epoch FROM now()))::bigint`
	end := h.count(t, now) + 4
	await.Until(t, "every slot to have had its turn", func() bool {
		if _, err := store.Purge(t.Context(), outbox.Purge{Retention: time.Millisecond}); err != nil {
			t.Fatal(err)
		}
		return h.count(t, now) > end
	})
	h.repair(t, pgstream.RepairOptions{})
	if got := drain(t, h.open(t, pgstream.Config{Subscription: "other"})); !sameSet(got, want) {
		t.Errorf("%d events arrive, want %d", len(got), len(want))
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

// TestSequenceSetBackAfterACheck sets the sequence back between a check and the end of a window: what was checked before says
// nothing about the next mark.
func TestSequenceSetBackAfterACheck(t *testing.T) {
	t.Parallel()
	h, store := settled(t, pgtest.URL(t))
	first := emit(t, h.pool, make([]string, 30)...)
	store.PassTime() // and check
	batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 100})
	if err != nil || len(batch.Messages()) != len(first) {
		t.Fatalf("claimed %v: %v", batch, err)
	}
	// The mark of this window is lower than these numbers, that of the next one is not.
	pgtest.Exec(t, h.pool, `SELECT setval('outbox_stream_seq', 85)`)
	want := emit(t, h.pool, make([]string, 3)...)
	pgtest.Exec(t, h.pool, `SELECT setval('outbox_stream_seq', 500)`)
	settle(t, batch, nil)
	want = append(want, emit(t, h.pool, "a")...)
	got, err := takeAll(t, store, 100)
	if err != nil && !errors.Is(err, pgstream.ErrRestored) {
		t.Fatal(err)
	}
	store.Close()
	wantAll(t, h.mended(t, got), want)
}
