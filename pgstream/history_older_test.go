package pgstream_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/pgstream"
)

// TestRestoredDumpOfAnOlderVersion loads a stream that knows nothing of histories into a younger server, whose counter passes the
// cursors before anybody migrates. The migration sees that the cursors were not written here.
func TestRestoredDumpOfAnOlderVersion(t *testing.T) {
	t.Parallel()
	h := &harness{url: pgtest.URL(t)}
	h.pool = pgtest.Connect(t, h.url)
	const lastWithout = 4 // the version before histories
	migrateTo(t, h.pool, "", 1, lastWithout)
	// As a load does: a cursor that has seen what this server's next transactions write.
	pgtest.Exec(t, h.pool, `UPDATE outbox_shards SET s1 = (SELECT (x || ':' || x || ':')::pg_snapshot
		FROM (SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint + 500 AS x) AS n)`)
	want := emit(t, h.pool, "a", "b", "c")
	pgtest.Exec(t, h.pool, strings.ReplaceAll(burnXids, "%d", "3000"))
	want = append(want, emit(t, h.pool, "a", "b")...)
	migrateTo(t, h.pool, "", lastWithout+1, pgstream.NewestMigration())
	h.refused(t, "", "has not been repaired")
	if err := (pgstream.Stream{}).DropSubscription(t.Context(), h.pool, pgstream.DefaultSubscription); !errors.Is(err, pgstream.ErrRestored) {
		t.Errorf("a subscription that waits for a repair was dropped: %v", err)
	}
	h.repair(t, pgstream.RepairOptions{})
	if got := drain(t, h.open(t, pgstream.Config{})); !sameSet(got, want) {
		t.Errorf("after the repair %d events arrive, want %d", len(got), len(want))
	}
}

// TestUpgradeWhereItStands migrates a stream of the version before under cursors that this server wrote: nothing is refused.
func TestUpgradeWhereItStands(t *testing.T) {
	t.Parallel()
	h := &harness{url: pgtest.URL(t)}
	h.pool = pgtest.Connect(t, h.url)
	const lastWithout = 4
	migrateTo(t, h.pool, "", 1, lastWithout)
	emit(t, h.pool, "a")
	// As a relay does, and as a subscription is made: in the transaction's first statement, and after another. A snapshot never lists
	// its own transaction, so where a later one ended in between it tells of its writer as of one that is over. The migration asks for
	// a repair then, since a load looks the same; the tests beside this one on the server bring that about now and then.
	pgtest.Exec(t, h.pool, `UPDATE outbox_shards SET s1 = pg_current_snapshot(), q1 = 1, hi = 1 WHERE shard < 4`)
	for sawItself := true; sawItself; {
		pgtest.Exec(t, h.pool, `DO $$ BEGIN CREATE TEMP TABLE first (); UPDATE outbox_shards SET s1 = pg_current_snapshot() WHERE shard >= 4; DROP TABLE first; END $$`)
		err := h.pool.QueryRow(t.Context(), `SELECT bool_or(pg_visible_in_snapshot(xmin::text::xid8, s1)) FROM outbox_shards WHERE shard >= 4`).Scan(&sawItself)
		if err != nil {
			t.Fatal(err)
		}
	}
	pgtest.Exec(t, h.pool, strings.ReplaceAll(burnXids, "%d", "100"))
	migrateTo(t, h.pool, "", lastWithout+1, pgstream.NewestMigration())
	want := emit(t, h.pool, "a", "b")
	if got := drain(t, h.open(t, pgstream.Config{})); !sameSet(got, want) {
		t.Errorf("after the upgrade %d events arrive, want %d", len(got), len(want))
	}
}
