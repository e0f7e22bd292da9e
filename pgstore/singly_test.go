package pgstore_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/outboxtest/storetest"
	"github.com/packfinderz/outbox/pgstore"
)

// refuse makes a function for triggers that raise.
const refuse = `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$;`

// TestOneRowCannotBeSettled has the server refuse what is written of one row. The others of the batch were published, and are
// settled: they must not be published again and again because of it.
func TestOneRowCannotBeSettled(t *testing.T) {
	t.Parallel()
	died := outbox.Outcome{Kind: outbox.Died, Reason: outbox.ReasonTerminal, Error: "no"}
	for name, c := range map[string]struct {
		layout, sql string
		second      outbox.Outcome
	}{
		"a dead letter too many": {"packfinderz", `CREATE UNIQUE INDEX ON outbox_dlq (event_id);
			INSERT INTO outbox_dlq (id, event_id, event_type, aggregate_type, aggregate_id, payload_json, error_reason, failed_at, created_at, attempt_count, retried_at)
			SELECT gen_random_uuid(), id, event_type, aggregate_type, aggregate_id, payload_json, 'terminal', now(), now(), 1, now() FROM outbox_events WHERE attempt_count = 7`, died},
		"a delivery, locked":      {"packfinderz", refuse + `CREATE TRIGGER refuse BEFORE UPDATE ON outbox_events FOR EACH ROW WHEN (OLD.attempt_count = 7) EXECUTE FUNCTION refuse()`, delivered},
		"a delivery, of a status": {"doorito", `ALTER TABLE outbox_event ADD CHECK (attempts <> 7 OR status <> 'delivered') NOT VALID`, delivered},
		"a delivery, leased":      {"modkit", `ALTER TABLE modkit_outbox_events ADD CHECK (attempts <> 8 OR status <> 'delivered') NOT VALID`, delivered},
		"a letter, leased":        {"ours", refuse + `CREATE TRIGGER refuse BEFORE INSERT ON app.letters FOR EACH ROW EXECUTE FUNCTION refuse()`, died},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, c.layout)
			ids := h.emit(t, h.event(), h.event(), h.event(), h.event())
			columns := &h.layout.Columns
			more := ""
			if h.HasMaximum() {
				more = ", " + columns.MaxAttempts.Name + " = 20"
			}
			pgtest.Exec(t, h.pool, fmt.Sprintf(`UPDATE %s SET %s = 7%s WHERE %s = $1`, h.table(), columns.Attempts.Name, more, columns.ID.Name), ids[1])
			pgtest.Exec(t, h.pool, c.sql)
			batch, err := h.open(t, pgstore.Config{MaxAttempts: 20}).Claim(t.Context(), outbox.ClaimRequest{Limit: len(ids)})
			if err != nil || len(batch.Messages()) != len(ids) {
				t.Fatalf("claimed %v, %v", batch, err)
			}
			defer batch.Abandon()
			left, err := batch.Settle(t.Context(), []outbox.Outcome{delivered, c.second, {Kind: outbox.Failed, Error: "busy"}, delivered})
			if !errors.Is(err, outbox.ErrLeaseLost) || len(left) != 1 || left[0] != ids[1] {
				t.Errorf("settle says %v, and %v; want an error about %s", left, err, ids[1])
			}
			for i, want := range []storetest.State{{Status: storetest.Delivered}, {}, {Status: storetest.Pending, Attempts: 1}, {Status: storetest.Delivered}} {
				if got := h.State(t, ids[i]); i != 1 && (got.Status != want.Status || got.Attempts != want.Attempts && want.Attempts > 0) {
					t.Errorf("event %d is %+v, want %+v", i, got, want)
				}
			}
			if got := h.State(t, ids[1]); got.Status == storetest.Delivered {
				t.Errorf("the event that cannot be settled is %+v", got)
			}
		})
	}
}

var delivered = outbox.Outcome{Kind: outbox.Delivered}

// TestOneRowCannotBeDead has the server refuse the dead letter of an event whose attempts are used up. It is told, and the
// claim has the others.
func TestOneRowCannotBeDead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ layout, attempts, letters string }{
		"locked": {"packfinderz", "attempt_count", "outbox_dlq"},
		"leased": {"ours", "tries", "app.letters"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, c.layout)
			ids := h.emit(t, h.event(), h.event(), h.event())
			id := h.layout.Columns.ID.Name
			pgtest.Exec(t, h.pool, fmt.Sprintf(`UPDATE %s SET %s = 20 WHERE %s IN ($1, $2)`, h.table(), c.attempts, id), ids[0], ids[1])
			event := h.layout.DeadLetter.Columns.EventID.Name
			pgtest.Exec(t, h.pool, refuse+fmt.Sprintf(`CREATE TRIGGER refuse BEFORE INSERT ON %s FOR EACH ROW WHEN (NEW.%s = '%s') EXECUTE FUNCTION refuse()`,
				c.letters, event, ids[0]))
			batch, err := h.open(t, pgstore.Config{MaxAttempts: 20}).Claim(t.Context(), outbox.ClaimRequest{Limit: len(ids)})
			if err != nil {
				t.Fatal(err)
			}
			defer batch.Abandon()
			met, ok := batch.(outbox.StuckBatch)
			if !ok {
				t.Fatal("the batch cannot say what is stuck")
			}
			if stuck, err := met.Stuck(); len(stuck) != 1 || stuck[0] != ids[0] || err == nil {
				t.Errorf("stuck are %v (%v), want %s", stuck, err, ids[0])
			}
			if len(batch.Messages()) != 1 || batch.Messages()[0].ID != ids[2] || len(batch.Exhausted()) != 1 {
				t.Errorf("claimed %v, and dead are %v", batch.Messages(), batch.Exhausted())
			}
			if lost, err := batch.Settle(t.Context(), []outbox.Outcome{delivered}); err != nil || len(lost) > 0 {
				t.Fatalf("settled with %v and %v", lost, err)
			}
			for i, want := range []storetest.Status{"", storetest.Dead, storetest.Delivered} {
				if got := h.State(t, ids[i]); i > 0 && got.Status != want || got.Status == storetest.Dead && i == 0 {
					t.Errorf("event %d is %+v", i, got)
				}
			}
		})
	}
}
