package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/layouts/layoutfile"
	"github.com/packfinderz/outbox/layouts/packfinderz"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/consumetest"
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

// What is known at the start is said at the start: tables that api migrate will not make, and an outbox that does not fit.
func TestTablesThatNobodyWillMake(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ before, after, says string }{
		"a view":           {before: `CREATE VIEW licenses AS SELECT 1 AS id`, says: "others have licenses)"},
		"dropped":          {after: `DROP TABLE notifications`, says: "DELETE FROM packfinderz_goose WHERE version_id IN (2)"},
		"the outbox's own": {after: `ALTER TABLE outbox_events DROP COLUMN published_at`, says: "the tables are not the outbox's"},
	} {
		url := testdb.URL(t)
		pool := testdb.Connect(t, url)
		testdb.Exec(t, pool, c.before)
		lookup := backendtest.Lookup(map[string]string{"DATABASE_URL": url, "PACKFINDERZ_API_LISTEN": "127.0.0.1:0"})
		if err := run(t.Context(), []string{"migrate"}, lookup, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
		testdb.Exec(t, pool, c.after)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		log, ended := consumetest.NewLog(), make(chan error, 1)
		go func() { ended <- run(ctx, nil, lookup, log.Logger()) }()
		await.Until(t, "the api to refuse or to start", func() bool { return len(ended) > 0 || log.Count("msg=listening") > 0 })
		cancel()
		if err := <-ended; program.ExitCode(err) != 2 || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: the api ends with %v", name, err)
		}
	}
}

// All migrations were taken back. The api waits for the tables, and says of both sets what to do.
func TestTablesThatAreNotMadeYet(t *testing.T) {
	t.Parallel()
	log := consumetest.NewLog()
	environment := map[string]string{"DATABASE_URL": testdb.URL(t), "PACKFINDERZ_API_LISTEN": "127.0.0.1:0"}
	backendtest.Start(t, environment, log.Logger(), run)
	await.Until(t, "the api to listen", func() bool { return log.Count("msg=listening") > 0 })
	for _, says := range []string{
		`a table of the outbox is not there yet, and nothing can be emitted without it: run api migrate`,
		`a table of the sample is not there yet, and nothing can be done without it: run api migrate" error="relation \"stores\" does not exist"`,
	} {
		if log.Count(says) != 1 {
			t.Errorf("the log does not say %s", says)
		}
	}
}

// A layout file that names other tables is not passed over: api migrate makes the contract's only.
func TestMigrateWithALayoutFile(t *testing.T) {
	t.Parallel()
	url := testdb.URL(t)
	for name, c := range map[string]struct {
		change func(*layouts.Layout)
		says   string
	}{
		"another table":   {func(l *layouts.Layout) { l.Table = "events" }, "names the tables events and outbox_dlq"},
		"other letters":   {func(l *layouts.Layout) { l.DeadLetter.Table = "letters" }, "names the tables outbox_events and letters"},
		"another schema":  {func(l *layouts.Layout) { l.Schema = "app" }, "names the tables app.outbox_events and app.outbox_dlq"},
		"no retriedAt":    {func(l *layouts.Layout) { l.DeadLetter.Columns.RetriedAt = layouts.Column{} }, "names no column retriedAt"},
		"more attempts":   {func(l *layouts.Layout) { l.MaxAttempts = 20 }, ""},
		"the same layout": {func(*layouts.Layout) {}, ""},
	} {
		layout := packfinderz.Layout()
		c.change(&layout)
		content, err := layoutfile.Format(layout)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "layout.yaml")
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		lookup := backendtest.Lookup(map[string]string{"DATABASE_URL": url, "PACKFINDERZ_OUTBOX_LAYOUT_FILE": file})
		err = run(t.Context(), []string{"migrate", "outbox"}, lookup, slog.New(slog.DiscardHandler))
		if c.says == "" && err != nil || c.says != "" && (program.ExitCode(err) != 2 || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: api migrate ends with %v", name, err)
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
