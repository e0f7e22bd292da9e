package main

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/outboxtest/testdb"
	"github.com/packfinderz/outbox/packfinderz/internal/migrate"
	"github.com/packfinderz/outbox/packfinderz/internal/program"
)

// The worker does not start on a table notifications that is somebody else's: every event would fail.
func TestTablesOfOthers(t *testing.T) {
	t.Parallel()
	for name, tables := range map[string]string{
		"other":       `CREATE TABLE notifications (id bigserial PRIMARY KEY, body jsonb)`,
		"other types": `CREATE TABLE notifications (event_id bigint, type text, audience text, store_id bigint, license_id bigint, status text, reason text, message text)`,
		"no unique key": `
			CREATE TABLE notifications (event_id uuid, type text, audience text, store_id uuid, license_id uuid, status text, reason text, message text)`,
	} {
		b := newBench(t)
		testdb.Exec(t, b.pool, `DROP TABLE notifications`)
		testdb.Exec(t, b.pool, tables)
		environment := b.environment(map[string]string{"PACKFINDERZ_DATABASE_URL": b.pool.Config().ConnString()})
		err := run(t.Context(), nil, func(name string) (string, bool) { value, ok := environment[name]; return value, ok }, b.log.Logger())
		if program.ExitCode(err) != 2 || !strings.Contains(err.Error(), "the tables are not the sample's") {
			t.Errorf("%s: the worker ends with %v", name, err)
		}
	}
}

// What api migrate will not make is not waited for: it has left the sample out for somebody else's stores, or has made the table, and
// somebody dropped it.
func TestTablesThatNobodyWillMake(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for name, c := range map[string]struct{ before, after, says string }{
		"a view":  {before: `CREATE VIEW stores AS SELECT 1 AS id`, says: "others have stores)"},
		"a type":  {before: `CREATE TYPE license_status_enum AS ENUM ('draft')`, says: "others have license_status_enum)"},
		"dropped": {after: `DROP TABLE notifications`, says: "DELETE FROM packfinderz_goose WHERE version_id IN (2)"},
	} {
		url := testdb.URL(t)
		pool := testdb.Connect(t, url)
		testdb.Exec(t, pool, c.before)
		if err := migrate.Up(t.Context(), url, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
		testdb.Exec(t, pool, c.after)
		err := b.refusal(map[string]string{"PACKFINDERZ_DATABASE_URL": url})
		if program.ExitCode(err) != 2 || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: the worker ends with %v", name, err)
		}
	}
}

// A table that api migrate will make is waited for, and the log says what to do. So it is where all migrations were taken back.
func TestTablesThatAreNotMadeYet(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.start(map[string]string{"PACKFINDERZ_DATABASE_URL": testdb.URL(t)})
	b.log.Await(t, `nothing can be done without it: run api migrate" error="relation \"notifications\" does not exist"`)
}
