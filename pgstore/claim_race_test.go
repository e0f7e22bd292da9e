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
	"github.com/packfinderz/outbox/outboxpgx"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/storetest"
	"github.com/packfinderz/outbox/pgstore"
)

// TestClaimOfAnEventThatDies stops a claim between its snapshot and its locks, and has another
// relay settle the event as dead meanwhile. The claim's snapshot shows neither the row's new
// version nor its letter; all the same the event stays dead, with one letter.
func TestClaimOfAnEventThatDies(t *testing.T) {
	t.Parallel()
	for name, outcome := range map[string]outbox.Outcome{
		"refused unseen":   {Kind: outbox.Died, Reason: outbox.ReasonInvalidPayload, Error: "not an order", Uncounted: true},
		"attempts used up": {Kind: outbox.Died, Reason: outbox.ReasonMaxAttempts, Error: "busy"},
	} {
		for _, layout := range []string{"packfinderz", "doorito", "modkit", "ours", "ours, deferred"} {
			t.Run(layout+"/"+name, func(t *testing.T) {
				t.Parallel()
				testClaimOfAnEventThatDies(t, newHarness(t, layout), layout == "ours, deferred", outcome)
			})
		}
	}
}

func testClaimOfAnEventThatDies(t *testing.T, h *harness, deferred bool, outcome outbox.Outcome) {
	t.Helper()
	config := pgstore.Config{MaxAttempts: 1}
	if next := &h.layout.Columns.NextAttemptAt; h.layout.DeadLetter != nil && !next.IsZero() {
		next.NotNull = true // a dead row has a due time, too: only its letter keeps it from being claimed
	}
	if deferred {
		h.defers(t)
		config.Lease = 100 * time.Millisecond
	}
	first, second := h.open(t, config), h.openGated(t, config)
	id := h.Emit(t, 1)[0]

	var claim outbox.Batch
	if deferred {
		// The second claim finds the row when the first one's time has run out.
		claim = claimOne(t, first)
		if err := claim.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		await.Until(t, "the claim to run out", func() bool { return h.State(t, id).DueIn <= 0 })
	}
	free := pgtest.Hold(t, h.pool, gateShut)
	claims := make(chan outbox.Batch, 1)
	go func() {
		defer close(claims)
		late, err := second.Claim(t.Context(), outbox.ClaimRequest{Limit: 10})
		if err != nil {
			t.Error(err)
			return
		}
		claims <- late
	}()
	h.awaitGate(t, second)
	if !deferred {
		claim = claimOne(t, first)
	}
	if lost, err := claim.Settle(t.Context(), []outbox.Outcome{outcome}); err != nil || len(lost) > 0 {
		t.Fatalf("the settle lost %v: %v", lost, err)
	}
	claim.Abandon()
	free()
	late, ok := <-claims
	if !ok {
		return
	}
	if len(late.Messages()) > 0 || len(late.Exhausted()) > 0 {
		t.Errorf("the late claim took %d dead events to publish, and %d to move to dead", len(late.Messages()), len(late.Exhausted()))
	}
	late.Abandon()
	h.checkDead(t, id, outcome)

	if retried := h.Retry(t, first, id); len(retried) != 1 {
		t.Fatalf("retried %v", retried)
	}
	claimOne(t, second).Abandon()
}

// TestClaimOfAnEventThatIsGivenUpInSQL has somebody write a letter by hand, which leaves the row as it was: before
// the claim, and between the claim's snapshot and its locks. Neither claim takes the event.
func TestClaimOfAnEventThatIsGivenUpInSQL(t *testing.T) {
	t.Parallel()
	const giveUp = `INSERT INTO outbox_dlq (event_id, event_type, aggregate_type, aggregate_id, payload_json, error_reason, created_at, attempt_count)
		SELECT id, event_type, aggregate_type, aggregate_id, payload_json, 'rejected', created_at, attempt_count FROM outbox_events WHERE id = $1`
	h := newHarness(t, "packfinderz")
	ids := h.Emit(t, 2)
	pgtest.Exec(t, h.pool, giveUp, ids[0])
	claimOne(t, h.open(t, pgstore.Config{})).Abandon()

	store := h.openGated(t, pgstore.Config{})
	free := pgtest.Hold(t, h.pool, gateShut)
	taken := make(chan int, 1)
	go func() {
		defer close(taken)
		batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 10})
		if err != nil {
			t.Error(err)
			return
		}
		defer batch.Abandon()
		taken <- len(batch.Messages())
	}()
	h.awaitGate(t, store)
	pgtest.Exec(t, h.pool, giveUp, ids[1])
	free()
	if n := <-taken; n != 0 {
		t.Errorf("the claim took %d events that had been given up", n)
	}
}

// claimOne claims the one event that is due, and gives the batch up at the end of the test.
func claimOne(t *testing.T, store *pgstore.Store) outbox.Batch {
	t.Helper()
	batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(batch.Abandon)
	if n := len(batch.Messages()); n != 1 {
		t.Fatalf("the claim took %d events", n)
	}
	return batch
}

// defers makes the layout's rows held by their due time.
func (h *harness) defers(t *testing.T) {
	t.Helper()
	h.layout.Hold, h.layout.Count = layouts.HoldDefer, layouts.CountOnFailure
	h.layout.Columns.LockedBy, h.layout.Columns.LockedUntil = layouts.Column{}, layouts.Column{}
	var err error
	if h.emitter, err = outboxpgx.New(h.layout, outbox.EmitConfig{}); err != nil {
		t.Fatal(err)
	}
}

// gateShut makes wait whoever has to pass the gate.
const gateShut = `SELECT pg_advisory_xact_lock(1)`

// openGated opens a store whose statements pass a gate at every row that they look at: after
// their snapshot, and before their locks.
func (h *harness) openGated(t *testing.T, config pgstore.Config) *pgstore.Store {
	t.Helper()
	schema := h.layout.Schema
	if schema == "" {
		schema = "public"
	}
	pgtest.Exec(t, h.pool, fmt.Sprintf(`
		CREATE FUNCTION gate() RETURNS boolean LANGUAGE plpgsql AS $$
			BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN true; END $$;
		ALTER TABLE %[1]s ENABLE ROW LEVEL SECURITY;
		CREATE POLICY gate ON %[1]s USING (gate());
		GRANT USAGE ON SCHEMA %[2]s TO PUBLIC;
		GRANT ALL ON ALL TABLES IN SCHEMA %[2]s TO PUBLIC`, h.table(), schema))
	// A relay would refuse such a table.
	store, err := pgstore.New(pgtest.AsRole(t, h.pool), h.layout, config)
	if err != nil {
		t.Fatal(err)
	}
	return store.ScansAreQuick()
}

// awaitGate waits until a store's claim of what is due stands before the gate.
func (h *harness) awaitGate(t *testing.T, store *pgstore.Store) {
	t.Helper()
	pgtest.AwaitBlocked(t, h.pool, 1)
	var statement string
	err := h.pool.QueryRow(t.Context(), `SELECT query FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&statement)
	if err != nil {
		t.Fatal(err)
	}
	if claim := pgstore.PlanStatements(store)["claimDue"].SQL; !strings.HasPrefix(claim, statement) {
		t.Fatalf("not the claim waits, but %s", statement)
	}
}

// checkDead checks that an event is dead as the outcome says, with one letter at most.
func (h *harness) checkDead(t *testing.T, id uuid.UUID, outcome outbox.Outcome) {
	t.Helper()
	if state := h.State(t, id); state.Status != storetest.Dead || h.layout.DeadLetter != nil && state.Reason != string(outcome.Reason) {
		t.Errorf("the event is %+v", state)
	}
	if h.layout.DeadLetter == nil {
		return
	}
	var letters int
	if err := h.pool.QueryRow(t.Context(), "SELECT count(*) FROM "+h.letters()).Scan(&letters); err != nil {
		t.Fatal(err)
	}
	if letters != 1 {
		t.Errorf("the event has %d letters", letters)
	}
}
