package pgstore_test

import (
	"errors"
	"testing"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/outboxtest/storetest"
	"github.com/packfinderz/outbox/pgstore"
)

// TestSwallowed has a trigger keep what a settle writes, without an error. The rows are locked, so that nobody else has
// them: it is said which these are, and the others are settled.
func TestSwallowed(t *testing.T) {
	t.Parallel()
	const trigger = `CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;`
	for name, c := range map[string]struct {
		layout, sql string
		outcome     outbox.Outcome
	}{
		"a delivery": {
			"packfinderz", `CREATE TRIGGER swallow BEFORE UPDATE ON outbox_events FOR EACH ROW WHEN (OLD.attempt_count = 7) EXECUTE FUNCTION swallow()`,
			outbox.Outcome{Kind: outbox.Delivered},
		},
		"a due time": {
			"doorito", `CREATE TRIGGER swallow BEFORE UPDATE ON outbox_event FOR EACH ROW WHEN (OLD.attempts = 7) EXECUTE FUNCTION swallow()`,
			outbox.Outcome{Kind: outbox.Delivered},
		},
		"a dead letter": {
			"packfinderz", `CREATE TRIGGER swallow BEFORE INSERT ON outbox_dlq FOR EACH ROW WHEN (NEW.attempt_count >= 7) EXECUTE FUNCTION swallow()`,
			outbox.Outcome{Kind: outbox.Died, Reason: outbox.ReasonTooLarge, Error: "no"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, c.layout)
			ids := h.emit(t, h.event(), h.event())
			table, attempts := h.table(), h.layout.Columns.Attempts.Name
			pgtest.Exec(t, h.pool, `UPDATE `+table+` SET `+attempts+` = 7`+map[bool]string{true: `, max_attempts = 20`}[c.layout == "doorito"]+` WHERE id = '`+ids[1].String()+`'`)
			pgtest.Exec(t, h.pool, trigger+c.sql)
			store := h.open(t, pgstore.Config{MaxAttempts: 20})
			batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 2})
			if err != nil || len(batch.Messages()) != 2 {
				t.Fatalf("claimed %v, %v", batch, err)
			}
			defer batch.Abandon()
			kept, err := batch.Settle(t.Context(), []outbox.Outcome{c.outcome, c.outcome})
			if !errors.Is(err, outbox.ErrLeaseLost) || len(kept) != 1 || kept[0] != ids[1] {
				t.Errorf("settle says %v, and %v; want an error about %s", kept, err, ids[1])
			}
			want := storetest.Delivered
			if c.outcome.Kind == outbox.Died {
				want = storetest.Dead
			}
			if state := h.State(t, ids[0]); state.Status != want {
				t.Errorf("the other row is %+v, want it settled", state)
			}
		})
	}
}

// TestSwallowedAtTheEnd has a trigger keep the dead letter of an event whose attempts are used up: the claim that cannot
// move it says so, and does not look empty.
func TestSwallowedAtTheEnd(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "packfinderz")
	h.emit(t, h.event())
	pgtest.Exec(t, h.pool, `UPDATE outbox_events SET attempt_count = 20;
		CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
		CREATE TRIGGER swallow BEFORE INSERT ON outbox_dlq FOR EACH ROW EXECUTE FUNCTION swallow()`)
	batch, err := h.open(t, pgstore.Config{MaxAttempts: 20}).Claim(t.Context(), outbox.ClaimRequest{Limit: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer batch.Abandon()
	met, ok := batch.(outbox.StuckBatch)
	if !ok {
		t.Fatal("the batch cannot say what is stuck")
	}
	if stuck, err := met.Stuck(); len(stuck) != 1 || err == nil || len(batch.Exhausted()) > 0 {
		t.Errorf("stuck are %v (%v), and dead %v; want one that is stuck", stuck, err, batch.Exhausted())
	}
}
