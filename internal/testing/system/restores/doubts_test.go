//go:build unix

package restores

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/internal/testing/process"
	"github.com/packfinderz/outbox/pgstream"
)

// inDoubtSQL is the rule of docs/backup.md: the id in the dump is neither older than the transaction that made the
// slot here, nor newer than the one that loaded the row.
const inDoubtSQL = `
SELECT count(*) FROM outbox_stream AS e JOIN pg_attribute AS a ON a.attrelid = e.tableoid AND a.attname = 'xmin'
WHERE e.xid::text::bigint BETWEEN a.xmin::text::bigint AND e.xmin::text::bigint`

// TestDoubtsOfALoad loads delivered events into a server whose transaction ids are those of the dump at that moment:
// what is in doubt then is what docs/backup.md says, also for a subscription that began later.
func TestDoubtsOfALoad(t *testing.T) {
	t.Parallel()
	program := process.Build(t)
	s := newStage(t, program, pgtest.Server(t, nil).URL("postgres"))
	s.run("migrate", "up")
	for range 300 {
		pgtest.Exec(t, s.pool, `SELECT outbox_emit('placed', '{}', 'orders')`)
	}
	s.run("subscriptions", "create", "late", "--from-now")
	s.run("drain", "--to", "discard:")
	dump := pgtest.Program(t, "pg_dump", nil, "--dbname", s.url)
	var first int64
	if err := s.pool.QueryRow(t.Context(), `SELECT min(xid::text::bigint) FROM outbox_stream`).Scan(&first); err != nil {
		t.Fatal(err)
	}

	server := pgtest.Server(t, nil)
	admin := pgtest.Connect(t, server.URL("postgres"))
	burn(t, admin, first)
	load := func(name string, args ...string) (doubtful int64) {
		t.Helper()
		pgtest.Exec(t, admin, `CREATE DATABASE `+name)
		url := server.URL(name)
		pgtest.Program(t, "psql", dump, append(args, "--quiet", "--set", "ON_ERROR_STOP=1", "--dbname", url)...)
		pool := pgtest.Connect(t, url)
		var want int64
		if err := pool.QueryRow(t.Context(), inDoubtSQL).Scan(&want); err != nil {
			t.Fatal(err)
		}
		would, err := pgstream.Stream{}.Repair(t.Context(), pool, pgstream.RepairOptions{DryRun: true})
		if err != nil {
			t.Fatal(err)
		}
		if len(would.BySubscription) != 2 {
			t.Errorf("%s: %+v", name, would)
		}
		for _, sub := range would.BySubscription {
			if sub.Unread != 0 || sub.Doubtful != want {
				t.Errorf("%s: subscription %s has %d events unread and %d in doubt, want 0 and %d", name, sub.Name, sub.Unread, sub.Doubtful, want)
			}
		}
		return want
	}
	if n := load("several"); n == 0 {
		t.Error("the ids of the server did not meet those of the dump")
	}
	if n := load("single", "--single-transaction"); n > 1 {
		t.Errorf("%d events are in doubt after a load in one transaction", n)
	}
}

// burn takes transaction ids until one has come.
func burn(t *testing.T, pool *pgxpool.Pool, until int64) {
	t.Helper()
	for now := int64(0); now < until; {
		if err := pool.QueryRow(t.Context(), `SELECT pg_current_xact_id()::text::bigint`).Scan(&now); err != nil {
			t.Fatal(err)
		}
	}
}
