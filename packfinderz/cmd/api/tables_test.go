package main

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/outboxtest/testdb"
	"github.com/packfinderz/outbox/packfinderz/internal/backendtest"
	"github.com/packfinderz/outbox/packfinderz/internal/program"
)

// The api does not start on tables that are somebody else's: api migrate has left them alone, and made none of its own.
func TestTablesOfOthers(t *testing.T) {
	t.Parallel()
	for _, table := range []string{"stores", "licenses", "notifications"} {
		url, pool := backendtest.Database(t)
		testdb.Exec(t, pool, `DROP TABLE `+table+` CASCADE; CREATE TABLE `+table+` (id bigserial PRIMARY KEY, name text NOT NULL)`)
		lookup := backendtest.Lookup(map[string]string{"DATABASE_URL": url, "PACKFINDERZ_API_LISTEN": "127.0.0.1:0"})
		err := run(t.Context(), nil, lookup, slog.New(slog.DiscardHandler))
		if program.ExitCode(err) != 2 || !strings.Contains(err.Error(), "the tables are not the sample's") {
			t.Errorf("%s: the api ends with %v", table, err)
		}
	}
}

// A release has PORT and no gateway: to migrate, the api needs the database's address and nothing else.
func TestMigrateNeedsTheDatabaseOnly(t *testing.T) {
	t.Parallel()
	url, log := testdb.URL(t), slog.New(slog.DiscardHandler)
	lookup := backendtest.Lookup(map[string]string{"DATABASE_URL": url, "PORT": "5000"})
	if err := run(t.Context(), []string{"migrate", "outbox"}, lookup, log); err != nil {
		t.Fatal(err)
	}
	pool := testdb.Connect(t, url)
	if n := backendtest.Count(t, pool, `SELECT count(*) FROM pg_class WHERE relname IN ('outbox_events', 'outbox_dlq', 'stores')`); n != 2 {
		t.Errorf("api migrate outbox has made %d tables, want the outbox's two", n)
	}
	if err := run(t.Context(), []string{"migrate"}, lookup, log); err != nil {
		t.Fatal(err)
	}
	backendtest.Count(t, pool, `SELECT count(*) FROM stores`)
	if err := run(t.Context(), []string{"migrate"}, backendtest.Lookup(nil), log); program.ExitCode(err) != 2 {
		t.Errorf("without an address: %v", err)
	}
}
