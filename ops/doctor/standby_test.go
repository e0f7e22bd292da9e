package doctor_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/internal/testing/pgserver"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/ops/doctor"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/pgstream"
)

// TestStandbys has a real standby: asynchronous, synchronous, gone, and asked itself.
func TestStandbys(t *testing.T) {
	t.Parallel()
	primary := pgtest.Server(t, nil)
	address := primary.URL("postgres")
	pool := pgtest.Connect(t, address)
	p := newStream(t, pool, pgstream.Shape{})
	p.finds(t, "standby", doctor.OK, "no standby is connected")

	pgtest.Exec(t, pool, `SELECT pg_create_physical_replication_slot('second')`)
	standby := pgtest.Standby(t, primary, map[string]string{
		"cluster_name": "second", "primary_slot_name": "second", "hot_standby_feedback": "on", "wal_receiver_status_interval": "1s",
	})
	awaitTrue(t, pool, `SELECT EXISTS (SELECT FROM pg_stat_replication WHERE state = 'streaming')`)
	p.finds(t, "standby", doctor.Warning, "the standby is asynchronous (second)", `'ANY 1 ("second")'`)

	own := &patient{pool: pgtest.Connect(t, standby.URL("postgres")), place: p.place}
	awaitTrue(t, own.pool, `SELECT to_regclass('outbox_dedupe') IS NOT NULL`)
	own.finds(t, "server", doctor.Problem, "this server is a standby", "target_session_attrs")

	// A query on the standby that does not end, and much that happens meanwhile.
	release := hold(t, own.pool, `SELECT FROM outbox_stream`)
	pgtest.Exec(t, pool, `DO $$ BEGIN FOR i IN 1..110000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$`)
	awaitTrue(t, pool, `SELECT EXISTS (SELECT FROM pg_replication_slots WHERE age(xmin) > 100000)`)
	p.finds(t, "vacuum-horizon", doctor.Warning, `a query on standby "second" keeps every row`, "On the standby")
	release()

	pgtest.Exec(t, pool, `ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 ("second")'`)
	pgtest.Exec(t, pool, `SELECT pg_reload_conf()`)
	awaitTrue(t, pool, `SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'quorum')`)
	p.isWell(t, "standby")
	p.pool = pgtest.Connect(t, address+"&options=-csynchronous_commit%3Dlocal")
	p.finds(t, "durability", doctor.Warning, "synchronous_commit is local")
	p.pool = pool

	// The standby's feedback stays in its slot when it is gone.
	awaitTrue(t, pool, `SELECT EXISTS (SELECT FROM pg_replication_slots WHERE xmin IS NOT NULL)`)
	if err := standby.Halt(t.Context(), pgserver.Fast); err != nil {
		t.Fatal(err)
	}
	awaitTrue(t, pool, `SELECT NOT EXISTS (SELECT FROM pg_stat_replication)`)
	p.finds(t, "standby", doctor.Problem, "every commit waits", "ALTER SYSTEM SET synchronous_standby_names = ''")
	p.finds(t, "vacuum-horizon", doctor.Warning, `replication slot "second" is not in use`, "SELECT pg_drop_replication_slot('second');")
}

// awaitTrue waits until a query says so.
func awaitTrue(t *testing.T, pool *pgxpool.Pool, sql string) {
	t.Helper()
	await.Until(t, sql, func() (holds bool) {
		if err := pool.QueryRow(t.Context(), sql).Scan(&holds); err != nil {
			t.Fatal(err)
		}
		return holds
	})
}

// awaitSetting waits until new sessions have a setting.
func awaitSetting(t *testing.T, address, name, value string) {
	t.Helper()
	await.Until(t, name+" to be "+value, func() bool {
		pool := pgtest.Connect(t, address)
		defer pool.Close()
		var is string
		if err := pool.QueryRow(t.Context(), `SELECT current_setting($1)`, name).Scan(&is); err != nil {
			t.Fatal(err)
		}
		return is == value
	})
}
