package backendtest

import (
	"context"
	"fmt"
	"hash/crc32"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/testdb"
)

// Gate is a place where sessions can be made to stand still: in the middle of a statement.
type Gate struct {
	t    testing.TB
	pool *pgxpool.Pool
	lock uint32 // of this database; every table has its own
	conn *pgx.Conn
}

// NewGate makes a gate, which is open, before something is done to a row of a table: "INSERT", say.
func NewGate(t testing.TB, pool *pgxpool.Pool, table, before string) *Gate {
	t.Helper()
	g := &Gate{t: t, pool: pool, lock: crc32.ChecksumIEEE([]byte(table))}
	testdb.Exec(t, pool, fmt.Sprintf(`
		CREATE FUNCTION %[1]s_gate() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			PERFORM pg_advisory_xact_lock_shared(%[2]d);
			RETURN NEW;
		END $$;
		CREATE TRIGGER %[1]s_gate BEFORE %[3]s ON %[1]s FOR EACH ROW EXECUTE FUNCTION %[1]s_gate()`, table, g.lock, before))
	conn, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	g.conn = conn
	t.Cleanup(func() { _ = conn.Close(context.Background()) }) // the database is dropped anyway
	return g
}

// Close lets nobody through.
func (g *Gate) Close() { g.exec(`SELECT pg_advisory_lock($1)`) }

// Open lets all through.
func (g *Gate) Open() { g.exec(`SELECT pg_advisory_unlock($1)`) }

func (g *Gate) exec(sql string) {
	g.t.Helper()
	if _, err := g.conn.Exec(g.t.Context(), sql, g.lock); err != nil {
		g.t.Fatal(err)
	}
}

// EndSessions ends the sessions of an application, as a server does that fails over: what they had begun is undone.
func (g *Gate) EndSessions(application string) {
	g.t.Helper()
	testdb.Exec(g.t, g.pool, `SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = $1`, application)
}

// AwaitStanding waits until sessions of an application stand at the gate; of any, if it has no name. Other databases of the
// server may have a gate of the same number.
func (g *Gate) AwaitStanding(application string) {
	g.t.Helper()
	await.Until(g.t, "sessions of "+application+" to stand at the gate", func() bool {
		return Count(g.t, g.pool, `
			SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)
			WHERE locktype = 'advisory' AND NOT granted AND objid = $1 AND datname = current_database()
				AND ($2 = '' OR application_name = $2)`, g.lock, application) > 0
	})
}
