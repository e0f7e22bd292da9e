package doctor_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts/packfinderz"
	"github.com/packfinderz/outbox/ops"
	"github.com/packfinderz/outbox/ops/doctor"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/pgstore"
	"github.com/packfinderz/outbox/pgstream"
)

// grantAll does what the findings about privileges say, and returns how many there were.
func grantAll(t *testing.T, admin *pgxpool.Pool, p *patient) (severities []string) {
	t.Helper()
	for _, f := range p.examine(t, "privileges").Findings {
		if f.Severity > doctor.OK {
			_, grants, _ := strings.Cut(f.Do, "GRANT ")
			pgtest.Exec(t, admin, "GRANT "+strings.TrimSuffix(grants, " then examine again."))
			severities = append(severities, f.Severity.String())
		}
	}
	return severities
}

// TestPrivilegesOfTable gives a role the rights that doctor says it lacks, and relays with them.
func TestPrivilegesOfTable(t *testing.T) {
	t.Parallel()
	admin := pgtest.Pool(t)
	p := newTable(t, admin, "packfinderz")
	p.pool = pgtest.AsRole(t, admin)
	p.finds(t, "privileges", doctor.Problem, "may not relay: it lacks SELECT, UPDATE on", "GRANT SELECT, INSERT ON "+
		"TABLE \"outbox_dlq\" TO role_of_")
	p.finds(t, "relays", doctor.Note, "could not look: permission denied for table outbox_events", "See the check privileges.")
	for _, check := range []string{"vacuum-horizon", "standby", "locks"} {
		p.finds(t, check, doctor.Note, "could not look at the sessions of other roles", "GRANT pg_monitor TO role_of_")
	}
	if got := strings.Join(append(grantAll(t, admin, p), grantAll(t, admin, p)...), " "); got != "problem problem warning warning" {
		t.Errorf("rights to relay, emit, purge and retry: %s", got)
	}
	p.isWell(t, "privileges")

	store, err := pgstore.New(p.pool, packfinderz.Layout(), pgstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, p.pool, insertPackfinderz)
	work(t, store, outbox.Outcome{Kind: outbox.Died, Error: "no", Reason: outbox.ReasonTerminal}, outbox.Purge{Retention: 1, DeadLetterRetention: 1})
}

// TestPrivilegesOfStream is the same for a stream in a schema of its own.
func TestPrivilegesOfStream(t *testing.T) {
	t.Parallel()
	admin := pgtest.Pool(t)
	files, err := pgstream.Migrations(pgstream.Shape{Slots: 3})
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Migrate(t, admin, "events", files)
	place := pgstream.Stream{Schema: "events"}
	p := &patient{pool: pgtest.AsRole(t, admin), place: ops.Place{Stream: &place}}
	p.finds(t, "privileges", doctor.Problem, "may not use the schema events", `GRANT USAGE ON SCHEMA "events" TO role_of_`)
	p.finds(t, "layout", doctor.Note, "could not look: permission denied for schema events")
	grantAll(t, admin, p)
	p.finds(t, "privileges", doctor.Problem, "may not relay", `SELECT, TRUNCATE on events.outbox_stream_0`)
	if got := strings.Join(append(grantAll(t, admin, p), grantAll(t, admin, p)...), " "); got != "problem problem warning warning" {
		t.Errorf("rights to relay, emit, purge and look: %s", got)
	}
	p.isWell(t, "privileges")

	store, err := pgstream.Open(t.Context(), p.pool, place, pgstream.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	pgtest.Exec(t, p.pool, `SELECT events.outbox_emit('placed', '{}', 'orders', p_key => 'k', p_dedupe_key => 'd')`)
	work(t, store, outbox.Outcome{Kind: outbox.Failed, Error: "no"}, outbox.Purge{Retention: 1, DeadLetterRetention: 1})
}

// work does all that a relay does.
func work(t *testing.T, store outbox.Store, outcome outbox.Outcome, purge outbox.Purge) {
	t.Helper()
	batch := claim(t, store)
	if _, err := batch.Settle(t.Context(), slices.Repeat([]outbox.Outcome{outcome}, len(batch.Messages()))); err != nil {
		t.Fatal(err)
	}
	batch.Abandon()
	if _, err := store.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Purge(t.Context(), purge); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Stats(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// claim claims until it has events.
func claim(t *testing.T, store outbox.Store) (batch outbox.Batch) {
	t.Helper()
	await.Until(t, "a batch", func() bool {
		var err error
		if batch, err = store.Claim(t.Context(), outbox.ClaimRequest{Limit: 10}); err != nil {
			t.Fatal(err)
		}
		if len(batch.Messages()) == 0 {
			batch.Abandon()
			return false
		}
		return true
	})
	t.Cleanup(batch.Abandon) // or, under row locks, the pool could not be closed
	return batch
}
