package pgstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/outboxpgx"
	"github.com/packfinderz/outbox/outboxtest/storetest"
	"github.com/packfinderz/outbox/pgstore"
)

// TestSweepGoesOn sweeps more events than one statement moves.
func TestSweepGoesOn(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "modkit")
	const events = 2500
	pgtest.Exec(t, h.pool, `INSERT INTO modkit_outbox_events
		(id, namespace, topic, payload, status, attempts, next_attempt_at, locked_by, locked_until)
		SELECT gen_random_uuid(), 'n', 't', '{}', 'processing', 3, now(), gen_random_uuid(), now() - interval '1 minute'
		FROM generate_series(1, $1::int)`, events)
	store := h.open(t, pgstore.Config{MaxAttempts: 3})
	if n, err := store.Sweep(t.Context()); err != nil || n != events {
		t.Errorf("swept %d events of %d: %v", n, events, err)
	}
	if stats, err := store.Stats(t.Context()); err != nil || stats.Dead != events {
		t.Errorf("after the sweep: %+v, %v", stats, err)
	}
}

// TestSweepLeavesAlone sweeps beside an event that is held, one that ran out before its last attempt, and
// one that has used its attempts up and is still held.
func TestSweepLeavesAlone(t *testing.T) {
	t.Parallel()
	for _, layout := range []string{"modkit", "ours"} {
		t.Run(layout, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, layout)
			h.Emit(t, 1)
			held := claimOne(t, h.open(t, pgstore.Config{MaxAttempts: 1})) // on its last attempt
			lost := h.Emit(t, 1)[0]
			claimOne(t, h.open(t, pgstore.Config{MaxAttempts: 2}))
			c := &h.layout.Columns
			pgtest.Exec(t, h.pool, fmt.Sprintf(`UPDATE %s SET %s = now() - interval '1 hour' WHERE %s = $1`,
				h.table(), c.LockedUntil.Name, c.ID.Name), lost)
			if n, err := h.open(t, pgstore.Config{MaxAttempts: 2}).Sweep(t.Context()); err != nil || n != 0 {
				t.Errorf("swept %d events that have an attempt left: %v", n, err)
			}
			if n, err := h.open(t, pgstore.Config{MaxAttempts: 1}).Sweep(t.Context()); err != nil || n != 1 {
				t.Errorf("swept %d events, want the one that ran out: %v", n, err)
			}
			if got := h.State(t, lost).Status; got != storetest.Dead {
				t.Errorf("what ran out is %s", got)
			}
			if lost, err := held.Settle(t.Context(), []outbox.Outcome{{Kind: outbox.Delivered}}); err != nil || len(lost) > 0 {
				t.Errorf("the event that was held is lost: %v", err)
			}
		})
	}
}

// TestPurgeLetters deletes old dead letters. An event that is dead goes with its letter; one that was
// retried waits again and stays, and so do young letters.
func TestPurgeLetters(t *testing.T) {
	t.Parallel()
	for _, layout := range []string{"packfinderz", "ours"} {
		t.Run(layout, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, layout)
			store := h.open(t, pgstore.Config{})
			old := h.Emit(t, 2)
			h.die(t, store)
			h.ageLetters(t, 48*time.Hour)
			young := h.Emit(t, 1)[0]
			h.die(t, store)
			h.Retry(t, store, old[1])

			purge := outbox.Purge{Retention: time.Hour, DeadLetterRetention: 24 * time.Hour}
			dry := purge
			dry.DryRun = true
			for _, c := range []struct {
				purge outbox.Purge
				want  int64
			}{{outbox.Purge{Retention: time.Hour}, 0}, {dry, 2}, {purge, 2}, {purge, 0}} {
				if n, err := store.Purge(t.Context(), c.purge); err != nil || n != c.want {
					t.Errorf("%+v: purged %d, want %d: %v", c.purge, n, c.want, err)
				}
			}
			for id, want := range map[uuid.UUID]storetest.Status{old[0]: "", old[1]: storetest.Pending, young: storetest.Dead} {
				if got := h.State(t, id).Status; got != want {
					t.Errorf("event %s is %q, want %q", id, got, want)
				}
			}
			claimOne(t, h.open(t, pgstore.Config{})).Abandon()
		})
	}
}

// TestLettersOfOthers has two topics share a dead-letter table: a store of one counts and purges no letters
// of the other.
func TestLettersOfOthers(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "ours")
	pgtest.Exec(t, h.pool, fmt.Sprintf(`ALTER TABLE %s ADD COLUMN topic text`, h.table()))
	h.layout.Columns.Topic = layouts.Column{Name: "topic"}
	var err error
	if h.emitter, err = outboxpgx.New(h.layout, outbox.EmitConfig{}); err != nil {
		t.Fatal(err)
	}
	mine, other := h.event(), h.event()
	mine.Topic, other.Topic = "mine", "other"
	ids := h.emit(t, mine, other)
	h.die(t, h.open(t, pgstore.Config{}))
	h.ageLetters(t, 48*time.Hour)

	store := h.open(t, pgstore.Config{Filter: pgstore.Filter{Topics: []string{"mine"}}})
	if stats, err := store.Stats(t.Context()); err != nil || stats.Dead != 1 {
		t.Errorf("stats count %d dead events, want 1: %v", stats.Dead, err)
	}
	for _, dry := range []bool{true, false} {
		n, err := store.Purge(t.Context(), outbox.Purge{Retention: time.Hour, DeadLetterRetention: time.Hour, DryRun: dry})
		if err != nil || n != 1 {
			t.Errorf("dry run %t: purged %d letters, want 1: %v", dry, n, err)
		}
	}
	for i, want := range []storetest.Status{"", storetest.Dead} {
		if got := h.State(t, ids[i]).Status; got != want {
			t.Errorf("event %d is %q, want %q", i, got, want)
		}
	}
}

// die makes all that is due dead.
func (h *harness) die(t *testing.T, store *pgstore.Store) {
	t.Helper()
	batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	defer batch.Abandon()
	outcomes := make([]outbox.Outcome, len(batch.Messages()))
	for i := range outcomes {
		outcomes[i] = outbox.Outcome{Kind: outbox.Died, Error: "no", Reason: outbox.ReasonTerminal}
	}
	if lost, err := batch.Settle(t.Context(), outcomes); err != nil || len(lost) > 0 {
		t.Fatalf("lost %v: %v", lost, err)
	}
}

// ageLetters makes every dead letter older. The PackFinderz table does not let them be changed, so its
// trigger is lifted.
func (h *harness) ageLetters(t *testing.T, by time.Duration) {
	t.Helper()
	pgtest.Exec(t, h.pool, fmt.Sprintf(`
		ALTER TABLE %[1]s DISABLE TRIGGER USER;
		UPDATE %[1]s SET %[2]s = %[2]s - make_interval(secs => %[3]f);
		ALTER TABLE %[1]s ENABLE TRIGGER USER`,
		h.letters(), h.layout.DeadLetter.Columns.FailedAt.Name, by.Seconds()))
}
