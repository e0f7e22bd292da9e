package main

import (
	"strings"
	"testing"

	"github.com/packfinderz/outbox/outboxtest/testdb"
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
