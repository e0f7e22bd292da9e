package migrate_test

import (
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/outboxtest/testdb"
	"github.com/packfinderz/outbox/packfinderz/internal/backendtest"
	"github.com/packfinderz/outbox/packfinderz/internal/migrate"
)

// The backend has tables of the sample's names, with columns of its own. They are left as they are, the sample's are left out, and
// the log says so; the outbox's are made.
func TestTablesOfTheBackendAreLeftAlone(t *testing.T) {
	t.Parallel()
	for name, own := range map[string]struct{ tables, taken string }{
		"all": {`
			CREATE TABLE stores (id bigserial PRIMARY KEY, slug text NOT NULL UNIQUE, name text NOT NULL);
			CREATE TYPE license_status_enum AS ENUM ('draft', 'active');
			CREATE TABLE licenses (id bigserial PRIMARY KEY, store_id bigint REFERENCES stores, status license_status_enum NOT NULL);
			CREATE TABLE notifications (id bigserial PRIMARY KEY, user_id bigint NOT NULL, body jsonb NOT NULL);
			INSERT INTO stores (slug, name) VALUES ('green-leaf', 'Green Leaf');
			INSERT INTO notifications (user_id, body) VALUES (1, '{}')`,
			"license_status_enum licenses stores notifications"},
		"stores":        {`CREATE TABLE stores (id bigserial PRIMARY KEY, slug text NOT NULL)`, "stores"},
		"licenses":      {`CREATE TABLE licenses (id bigserial PRIMARY KEY)`, "licenses"},
		"notifications": {`CREATE TABLE notifications (id bigserial PRIMARY KEY, body jsonb)`, "notifications"},
		"a view":        {`CREATE VIEW notifications AS SELECT 1 AS id`, "notifications"},
		"a type":        {`CREATE TYPE notification_type_enum AS ENUM ('email')`, "notification_type_enum"},
		"an index":      {`CREATE TABLE permits (id int); CREATE INDEX idx_licenses_store_id ON permits (id)`, "idx_licenses_store_id"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := testdb.URL(t)
			pool := testdb.Connect(t, url)
			testdb.Exec(t, pool, own.tables)
			before := strings.Split(shape(t, pool), "\n")
			for range 2 {
				log := api(t, url)
				if !strings.Contains(log, "the sample's tables are left out") {
					t.Errorf("the log does not say what is left out: %s", log)
				}
				for taken := range strings.FieldsSeq(own.taken) {
					if !strings.Contains(log, taken) {
						t.Errorf("the log does not name %s: %s", taken, log)
					}
				}
			}
			after := strings.Split(shape(t, pool), "\n")
			for _, line := range before {
				if !slices.Contains(after, line) {
					t.Errorf("%q is gone", line)
				}
			}
			testdb.Exec(t, pool, event)
			if n := backendtest.Count(t, pool, `
				SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relname IN ('stores', 'licenses', 'notifications')`); name != "all" && n > 1 {
				t.Errorf("%d tables: some of the sample's were made, and others not", n)
			}
			if name == "all" && backendtest.Count(t, pool, `SELECT count(*) FROM stores JOIN notifications USING (id)`) != 1 {
				t.Error("rows of the backend are gone")
			}
		})
	}
}

// The tables are in a schema behind the first of the search path: no second ones are made in front of them.
func TestTablesInAnotherSchema(t *testing.T) {
	t.Parallel()
	url := testdb.URL(t)
	api(t, url)
	pool := testdb.Connect(t, url)
	testdb.Exec(t, pool, event)
	testdb.Exec(t, pool, `CREATE SCHEMA app`)
	err := migrate.Up(t.Context(), url+"&search_path=app,public", slog.New(slog.DiscardHandler))
	if !errors.Is(err, migrate.ErrElsewhere) || !strings.Contains(err.Error(), "add search_path=public") {
		t.Errorf("migrated before tables that are there: %v", err)
	}
	if n := backendtest.Count(t, testdb.Connect(t, url+"&search_path=app,public"), `SELECT count(*) FROM outbox_events`); n != 1 {
		t.Errorf("%d events are seen, want 1", n)
	}
}

// Every name that the sample takes is looked for beforehand: here each is a table of somebody else.
func TestNamesOfTheSample(t *testing.T) {
	t.Parallel()
	url := testdb.URL(t)
	pool := testdb.Connect(t, url)
	names := func() (list []string) {
		err := pool.QueryRow(t.Context(), `
			SELECT array_agg(name) FROM (
				SELECT relname::text AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace
				UNION SELECT typname FROM pg_type WHERE typnamespace = 'public'::regnamespace AND typtype = 'e'
			) names WHERE name !~ 'goose|_pkey$'`).Scan(&list)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	if err := migrate.Outbox(t.Context(), url, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	outbox := names()
	api(t, url)
	sample := slices.DeleteFunc(names(), func(name string) bool { return slices.Contains(outbox, name) })
	url = testdb.URL(t)
	for _, name := range sample {
		testdb.Exec(t, testdb.Connect(t, url), `CREATE TABLE `+name+` (id int)`)
	}
	log := strings.FieldsFunc(api(t, url), func(r rune) bool { return strings.ContainsRune(` []"`, r) })
	for _, name := range sample {
		if !slices.Contains(log, name) {
			t.Errorf("%s is not looked for", name)
		}
	}
}

// A database that the version before this one has migrated, wholly or in part, goes on: what is missing is made, nothing is made
// twice, and rows stay. testdata/before has the migrations of that version.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	url := testdb.URL(t)
	api(t, url)
	want := shape(t, testdb.Connect(t, url))
	outbox, sample := os.DirFS("testdata/before/outbox"), os.DirFS("testdata/before/sample")
	for name, undo := range map[string]string{
		"all": ``,
		"before invalid_row": `
			DELETE FROM outbox_events_packfinderz_goose WHERE version_id = 4`,
		"before notifications": `
			DROP TABLE notifications; DROP TYPE notification_type_enum, notification_audience_enum;
			DELETE FROM packfinderz_goose WHERE version_id = 2`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := testdb.URL(t)
			pool := testdb.Connect(t, url)
			gooseUp(t, url, "outbox_events_packfinderz_goose", outbox)
			gooseUp(t, url, "packfinderz_goose", sample)
			testdb.Exec(t, pool, event)
			testdb.Exec(t, pool, `INSERT INTO stores (id, name) VALUES (gen_random_uuid(), 'Green Leaf')`)
			testdb.Exec(t, pool, undo)
			log := api(t, url)
			if strings.Contains(log, "left out") || strings.Contains(log, "kept as it is") || undo == "" && strings.Contains(log, "migrated") {
				t.Errorf("the log says %s", log)
			}
			if got := shape(t, pool); got != want {
				t.Errorf("the tables are\n%s\nwant\n%s", got, want)
			}
			if n := backendtest.Count(t, pool, `SELECT count(*) FROM outbox_events, stores`); n != 1 {
				t.Error("rows are gone")
			}
		})
	}
}

// Outbox makes no table of the sample.
func TestOutboxOnly(t *testing.T) {
	t.Parallel()
	url := testdb.URL(t)
	if err := migrate.Outbox(t.Context(), url, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	pool := testdb.Connect(t, url)
	testdb.Exec(t, pool, event)
	if n := backendtest.Count(t, pool, `SELECT count(*) FROM pg_class WHERE relname IN ('stores', 'licenses', 'notifications')`); n != 0 {
		t.Errorf("%d tables of the sample were made", n)
	}
}

// A table of that name that is no outbox is said to be none, and stays.
func TestOtherTableOfTheOutboxsName(t *testing.T) {
	t.Parallel()
	url := testdb.URL(t)
	pool := testdb.Connect(t, url)
	testdb.Exec(t, pool, `CREATE TYPE event_type_enum AS ENUM ('a'); CREATE TYPE aggregate_type_enum AS ENUM ('a');
		CREATE TABLE outbox_events (id uuid PRIMARY KEY, created_at timestamptz, published_at timestamptz)`)
	err := migrate.Up(t.Context(), url, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), `no column "event_type"`) {
		t.Errorf("%v does not say what the table lacks", err)
	}
	backendtest.Count(t, pool, `SELECT count(*) FROM outbox_events`)
}
