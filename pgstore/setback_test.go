package pgstore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/outboxtest/storetest"
	"github.com/packfinderz/outbox/pgstore"
)

// setBack moves every time into the future, which is where it is when the server's clock is set back.
func (h *harness) setBack(t *testing.T, by time.Duration) {
	t.Helper()
	c := &h.layout.Columns
	var set []string
	for _, column := range []layouts.Column{c.LockedUntil, c.UpdatedAt} {
		if !column.IsZero() {
			set = append(set, fmt.Sprintf("%s = %s + make_interval(secs => %f)", column.Name, column.Name, by.Seconds()))
		}
	}
	pgtest.Exec(t, h.pool, fmt.Sprintf(`UPDATE %s SET %s`, h.table(), strings.Join(set, ", ")))
}

// claimed is how many events a claim takes.
func claimed(t *testing.T, store *pgstore.Store) int {
	t.Helper()
	batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(batch.Abandon)
	return len(batch.Messages())
}

// TestClockSetBack sets the server's clock back by ten hours while a dead worker's lease stands. Another store takes the
// event over when it has seen the lease for as long as it is, and not before: the worker may be alive. Where a row tells
// how long its lease is, that is the lease; where it does not, ten of the store's own.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	const short, long = 15 * time.Minute, time.Hour
	for layout, wait := range map[string]time.Duration{"modkit": long, "ours": 10 * short} {
		t.Run(layout, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, layout)
			if layout == "ours" && !h.layout.Columns.UpdatedAt.IsZero() {
				t.Fatal("this layout is to have no time of the last change")
			}
			h.Emit(t, 1)
			publishing := claimOne(t, h.open(t, pgstore.Config{Lease: long}))
			other := h.open(t, pgstore.Config{Lease: short})
			if n := claimed(t, other); n != 0 {
				t.Fatalf("%d events claimed that another worker holds", n)
			}
			h.setBack(t, 10*time.Hour)
			other.PassTime(wait) // since before: what it has seen until then was another lease
			if n := claimed(t, other); n != 0 {
				t.Fatalf("%d events taken over from a worker that may be alive", n)
			}
			other.PassTime(wait / 2)
			if n := claimed(t, other); n != 0 {
				t.Errorf("%d events taken over before the lease was over", n)
			}
			other.PassTime(wait / 2)
			if n := claimed(t, other); n != 1 {
				t.Errorf("%d events taken over when the lease is over, want 1", n)
			}
			if lost, err := publishing.Settle(t.Context(), []outbox.Outcome{{Kind: outbox.Delivered}}); err != nil || len(lost) != 1 {
				t.Errorf("the first worker lost %d events, want 1: %v", len(lost), err)
			}
		})
	}
}

// TestClockSetBackUnderLivingWorker has the worker renew its lease: it keeps the event.
func TestClockSetBackUnderLivingWorker(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "modkit")
	h.Emit(t, 1)
	publishing := claimOne(t, h.open(t, pgstore.Config{Lease: time.Hour}))
	// The mark of a claim is its lease's end, so the lease cannot be moved under it: one that is longer than the store's own
	// looks the same.
	shorter := h.open(t, pgstore.Config{Lease: time.Second})
	for range 3 {
		for range 2 {
			if n := claimed(t, shorter); n != 0 {
				t.Fatalf("%d events taken over from a worker that renews its lease", n)
			}
			shorter.PassTime(40 * time.Minute)
		}
		if err := publishing.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if lost, err := publishing.Settle(t.Context(), []outbox.Outcome{{Kind: outbox.Delivered}}); err != nil || len(lost) > 0 {
		t.Errorf("a worker that is alive lost its event: %v, %v", lost, err)
	}
}

// TestPurgeGoesOn has the purge of delivered events fail: dead letters go all the same, and the failure is reported.
func TestPurgeGoesOn(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "packfinderz")
	store := h.open(t, pgstore.Config{})
	dead := h.Emit(t, 1)[0]
	h.die(t, store)
	h.ageLetters(t, 48*time.Hour)
	delivered := h.Emit(t, 1)[0]
	if lost, err := claimOne(t, store).Settle(t.Context(), []outbox.Outcome{{Kind: outbox.Delivered}}); err != nil || len(lost) > 0 {
		t.Fatalf("lost %v: %v", lost, err)
	}
	h.Age(t, 48*time.Hour)
	pgtest.Exec(t, h.pool, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not today'; END $$`)
	pgtest.Exec(t, h.pool, `CREATE TRIGGER refuses BEFORE DELETE ON outbox_events FOR EACH ROW WHEN (OLD.published_at IS NOT NULL) EXECUTE FUNCTION refuse()`)
	n, err := store.Purge(t.Context(), outbox.Purge{Retention: time.Hour, DeadLetterRetention: time.Hour})
	if n != 1 || err == nil || !strings.Contains(err.Error(), "not today") {
		t.Errorf("purged %d, want the letter, and the failure reported: %v", n, err)
	}
	for id, want := range map[uuid.UUID]storetest.Status{dead: "", delivered: storetest.Delivered} {
		if got := h.State(t, id).Status; got != want {
			t.Errorf("event %s is %q, want %q", id, got, want)
		}
	}
}
