package migrate_test

import (
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/packfinderz/outbox/layouts/packfinderz"
	"github.com/packfinderz/outbox/outboxtest/testdb"
	"github.com/packfinderz/outbox/packfinderz/internal/backendtest"
	"github.com/packfinderz/outbox/packfinderz/migrations"
	"github.com/packfinderz/outbox/pgstore"
)

// gooseUp runs migrations as a backend does that uses goose itself, or as an earlier version of this one did.
func gooseUp(t *testing.T, url, versions string, files fs.FS) *goose.Provider {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	db := stdlib.OpenDB(*config)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithTableName(versions), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	return provider
}

// outboxOnly are the outbox's migrations, or the first of them.
func outboxOnly(t *testing.T, patterns ...string) fs.FS {
	t.Helper()
	files, err := packfinderz.Migrations(packfinderz.Layout())
	if err != nil {
		t.Fatal(err)
	}
	some := fstest.MapFS{}
	for _, pattern := range patterns {
		paths, err := fs.Glob(files, pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, path := range paths {
			content, err := fs.ReadFile(files, path)
			if err != nil {
				t.Fatal(err)
			}
			some[path] = &fstest.MapFile{Data: content}
		}
	}
	return some
}

const event = `INSERT INTO outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json)
	VALUES (gen_random_uuid(), 'ad_created', 'ad', gen_random_uuid(), '{}')`

// The backend has tables of the outbox that it made itself, or none; outbox migrate up --adopt and api migrate follow each other, in
// either order and again. All tables are there in the end, and events that were there before are.
func TestOutboxProgramAndAPIInEitherOrder(t *testing.T) {
	t.Parallel()
	url := testdb.URL(t)
	api(t, url)
	want := shape(t, testdb.Connect(t, url))
	program := program(t)
	before := map[string]func(t *testing.T, url string, pool *pgxpool.Pool){
		"outbox_events of the backend": func(t *testing.T, url string, pool *pgxpool.Pool) {
			t.Helper()
			gooseUp(t, url, "goose_db_version", outboxOnly(t, "00001*"))
			testdb.Exec(t, pool, event)
		},
		"both tables of the backend": func(t *testing.T, url string, pool *pgxpool.Pool) {
			t.Helper()
			gooseUp(t, url, "goose_db_version", migrations.Outbox())
			testdb.Exec(t, pool, event)
		},
		"tables of the outbox program": func(t *testing.T, url string, pool *pgxpool.Pool) {
			t.Helper()
			gooseUp(t, url, "outbox_events_packfinderz_goose", outboxOnly(t, "*.sql"))
			testdb.Exec(t, pool, event)
		},
		"all tables, of the version before": func(t *testing.T, url string, pool *pgxpool.Pool) {
			t.Helper()
			gooseUp(t, url, "outbox_events_packfinderz_goose", os.DirFS("testdata/before/outbox"))
			gooseUp(t, url, "packfinderz_goose", os.DirFS("testdata/before/sample"))
			testdb.Exec(t, pool, event)
		},
	}
	for state, make := range before {
		for name, order := range map[string][]string{
			"the program first": {"adopt", "api", "adopt", "api"}, "api first": {"api", "adopt", "api", "adopt"},
		} {
			t.Run(state+"/"+name, func(t *testing.T) {
				t.Parallel()
				url := testdb.URL(t)
				pool := testdb.Connect(t, url)
				make(t, url, pool)
				var said string
				for _, step := range order {
					if step == "adopt" {
						said = adopt(t, program, url)
					} else {
						said = api(t, url)
					}
				}
				if strings.Contains(said, "migrated") || strings.Contains(said, "applied\n") && !strings.Contains(said, "nothing to do") {
					t.Errorf("the second time something was left to do: %s", said)
				}
				if got := shape(t, pool); got != want {
					t.Errorf("the tables are\n%s\nwant\n%s", got, want)
				}
				if n := backendtest.Count(t, pool, `SELECT count(*) FROM outbox_events`); n != 1 {
					t.Errorf("%d events are left, want 1", n)
				}
			})
		}
	}
	t.Run("no tables", func(t *testing.T) { // the other order has nothing to adopt, and says so
		t.Parallel()
		url := testdb.URL(t)
		api(t, url)
		adopt(t, program, url)
		if got := shape(t, testdb.Connect(t, url)); got != want {
			t.Errorf("the tables are\n%s\nwant\n%s", got, want)
		}
	})
}

// A backend copies the outbox's one migration among its own. The tables are those of the layout; its own stay alone, and its
// goose takes the migration back again.
func TestOneMigrationForABackendOfItsOwn(t *testing.T) {
	t.Parallel()
	url := testdb.URL(t)
	gooseUp(t, url, "goose_db_version", outboxOnly(t, "*.sql"))
	want := shape(t, testdb.Connect(t, url))

	copied, err := fs.ReadFile(migrations.Outbox(), "00001_outbox.sql")
	if err != nil {
		t.Fatal(err)
	}
	if paths, err := fs.Glob(migrations.Outbox(), "*"); err != nil || len(paths) != 1 {
		t.Errorf("the outbox's set is %q, want one file (%v)", paths, err)
	}
	url = testdb.URL(t)
	pool := testdb.Connect(t, url)
	provider := gooseUp(t, url, "goose_db_version", fstest.MapFS{
		"00041_orders.sql": {Data: []byte("-- +goose Up\nCREATE TABLE orders (id bigint);\n-- +goose Down\nDROP TABLE orders;\n")},
		"00042_outbox.sql": {Data: copied},
	})
	testdb.Exec(t, pool, `ALTER TABLE orders RENAME TO orders_goose`) // which shape passes over
	if got := shape(t, pool); got != want {
		t.Errorf("the one migration makes\n%s\nthe layout's\n%s", got, want)
	}
	if err := pgstore.VerifyEmit(t.Context(), pool, packfinderz.Layout()); err != nil {
		t.Error(err)
	}
	if _, err := provider.DownTo(t.Context(), 41); err != nil {
		t.Fatal(err)
	}
	if got := shape(t, pool); got != "" {
		t.Errorf("down leaves\n%s", got)
	}
}
