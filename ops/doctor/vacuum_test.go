package doctor_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/ops/doctor"
	"github.com/packfinderz/outbox/pgstream"
)

// hold runs a statement in a transaction that stays open until release is called, or the
// test ends.
func hold(t *testing.T, pool *pgxpool.Pool, sql string) (release func()) {
	t.Helper()
	conn, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	release = func() { _ = conn.Close(background()) } // closing twice does nothing
	t.Cleanup(release)
	if _, err := conn.Exec(t.Context(), `SET application_name = 'nightly report'; BEGIN ISOLATION LEVEL REPEATABLE READ`); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
	return release
}

// churn updates every row of a table, some times over, until more rows are dead than so many.
func churn(t *testing.T, p *patient, dead int) {
	t.Helper()
	pgtest.Exec(t, p.pool, `INSERT INTO modkit_outbox_events (id, namespace, topic, payload, status, next_attempt_at)
		SELECT gen_random_uuid(), 'shop', 'orders', '{}', 'delivered', now() FROM generate_series(1, 4000)`)
	for range 4 {
		pgtest.Exec(t, p.pool, `UPDATE modkit_outbox_events SET updated_at = now()`)
	}
	awaitTrue(t, p.pool, fmt.Sprintf(`SELECT n_dead_tup > %d FROM pg_stat_user_tables WHERE relname = 'modkit_outbox_events'`, dead))
}

func TestDeadRows(t *testing.T) {
	t.Parallel()
	p := newTable(t, pgtest.Pool(t), "modkit")
	hold(t, p.pool, `SELECT FROM modkit_outbox_events`) // what dies now cannot be removed
	churn(t, p, 10_000)
	p.config = impatient
	p.finds(t, "dead-rows", doctor.Warning, "public.modkit_outbox_events has 1", "dead rows beside 4000 live ones", "should have come at", "VACUUM (ANALYZE)")
	p.finds(t, "vacuum-horizon", doctor.Warning, `application "nightly report"`, "idle in transaction", "pg_terminate_backend")
}

func TestAutovacuumIsOff(t *testing.T) {
	t.Parallel()
	p := newTable(t, pgtest.Pool(t), "modkit")
	pgtest.Exec(t, p.pool, `ALTER TABLE modkit_outbox_events SET (autovacuum_enabled = off)`)
	churn(t, p, 0)
	p.finds(t, "dead-rows", doctor.Warning, "autovacuum is off for public.modkit_outbox_events, which has", "dead rows beside 4000 live ones", "RESET (autovacuum_enabled)")

	stream := newStream(t, p.pool, pgstream.Shape{})
	pgtest.Exec(t, p.pool, `ALTER TABLE outbox_parked SET (autovacuum_enabled = off)`)
	stream.finds(t, "dead-rows", doctor.Warning, "autovacuum is off for public.outbox_parked")
}

func TestPreparedTransaction(t *testing.T) {
	t.Parallel()
	p := newTable(t, pgtest.Pool(t), "doorito")
	p.config = impatient
	var gid string
	if err := p.pool.QueryRow(t.Context(), `SELECT 'forgotten in ' || current_database()`).Scan(&gid); err != nil {
		t.Fatal(err)
	}
	conn, err := p.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release() // or the pool could not be closed
	for _, sql := range []string{
		`BEGIN`, `LOCK TABLE outbox_event IN SHARE MODE`, `SELECT pg_current_xact_id()`, fmt.Sprintf(`PREPARE TRANSACTION '%s'`, gid),
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	conn.Release()
	t.Cleanup(func() { // or the database could not be dropped
		if _, err := p.pool.Exec(background(), fmt.Sprintf(`ROLLBACK PREPARED '%s'`, gid)); err != nil {
			t.Error(err)
		}
	})
	p.finds(t, "vacuum-horizon", doctor.Warning, fmt.Sprintf("prepared transaction %q", gid), fmt.Sprintf("ROLLBACK PREPARED '%s';", gid))
	p.finds(t, "locks", doctor.Problem, "a prepared transaction has outbox_event locked (ShareLock)")
}
