package cli_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts/shipped"
)

func connect(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// relations lists what the user's schemas hold: tables, indexes, types, functions.
func relations(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	var names *string
	err := pool.QueryRow(t.Context(), `
		SELECT string_agg(name, ' ' ORDER BY name COLLATE "C") FROM (
			SELECT n.nspname || '.' || c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
			UNION ALL SELECT n.nspname || '.' || t.typname || ' (type)' FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace WHERE t.typtype = 'e'
			UNION ALL SELECT n.nspname || '.' || p.proname || '()' FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
		) all_names WHERE name NOT LIKE 'pg\_%' AND name NOT LIKE 'information_schema.%'`).Scan(&names)
	if err != nil {
		t.Fatal(err)
	}
	if names == nil {
		return ""
	}
	return *names
}

// migrating is a fresh database, and the arguments of outbox migrate for a layout in it.
func migrating(t *testing.T, layout string, place ...string) (pool *pgxpool.Pool, args func(command string, more ...string) []string) {
	t.Helper()
	url := pgtest.URL(t)
	return connect(t, url), func(command string, more ...string) []string {
		return slices.Concat([]string{"migrate", command, "--from", url, "--layout", layout}, place, more)
	}
}

func TestMigrateUpDownUp(t *testing.T) {
	t.Parallel()
	for _, shipped := range shipped.All() {
		for name, place := range map[string][]string{
			"default":        nil,
			"schema":         {"--schema", "events"},
			"renamed":        {"--table", "my_events"},
			"a hostile name": {"--schema", `a"b; --`, "--table", `x"; DROP TABLE y; --` + "\n'$$"},
		} {
			t.Run(shipped.Layout.Name+"/"+name, func(t *testing.T) {
				t.Parallel()
				pool, args := migrating(t, shipped.Layout.Name, place...)
				if got := ok(t, "", args("status")...); strings.Count(got, "pending") != strings.Count(got, "\n") {
					t.Errorf("status before: %s", got)
				}
				if got := relations(t, pool); got != "" {
					t.Errorf("status wrote something: %s", got)
				}
				ok(t, "", args("up")...)
				first := relations(t, pool)
				if got := ok(t, "", args("status")...); strings.Contains(got, "pending") {
					t.Errorf("status after up: %s", got)
				}
				if got := ok(t, "", args("up")...); !strings.Contains(got, "nothing to do") {
					t.Errorf("a second up: %s", got)
				}
				ok(t, "", args("down")...)
				if got := relations(t, pool); got != "" {
					t.Errorf("down left %s", got)
				}
				if got := ok(t, "", args("down")...); !strings.Contains(got, "nothing to do") {
					t.Errorf("a second down: %s", got)
				}
				if got := ok(t, "", args("up", "--json")...); !strings.Contains(got, `"applied":true`) {
					t.Errorf("up --json: %s", got)
				}
				if got := relations(t, pool); got != first {
					t.Errorf("up, down, up made %s, the first up %s", got, first)
				}
			})
		}
	}
}

// TestMigrateDownKeepsEvents refuses to delete events unless told to.
func TestMigrateDownKeepsEvents(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	source := []string{"--from", url, "--layout", "modkit"}
	ok(t, "", append([]string{"migrate", "up"}, source...)...)
	ok(t, `{"namespace":"a","topic":"b","payload":{}}`, append([]string{"emit"}, source...)...)
	refused(t, "holds events", "", append([]string{"migrate", "down"}, source...)...)
	ok(t, "", append([]string{"migrate", "down", "--force"}, source...)...)
}

// TestMigrateAdopt adds what a table of the team's own lacks, and never drops it.
func TestMigrateAdopt(t *testing.T) {
	t.Parallel()
	for _, shipped := range shipped.All() {
		t.Run(shipped.Layout.Name, func(t *testing.T) {
			t.Parallel()
			pool, args := migrating(t, shipped.Layout.Name)
			refused(t, "no such table to adopt", "", args("up", "--adopt")...)
			// The team's own migrations made the table, and our indexes are all that is missing.
			ok(t, "", args("up")...)
			pgtest.Exec(t, pool, `DROP TABLE `+shipped.Layout.Table+`_`+shipped.Layout.Name+`_goose`)
			table := pgx.Identifier{shipped.Layout.Table}.Sanitize()
			pgtest.Exec(t, pool, `DROP INDEX idx_`+shipped.Layout.Table+`_claim`)
			pgtest.Exec(t, pool, `DROP INDEX IF EXISTS idx_`+shipped.Layout.Table+`_dead, idx_`+shipped.Layout.Table+`_delivered, idx_`+shipped.Layout.Table+`_stray`)
			pgtest.Exec(t, pool, `DROP TABLE IF EXISTS outbox_dlq; DROP FUNCTION IF EXISTS outbox_dlq_append_only; DROP TYPE IF EXISTS outbox_dlq_reason_enum`)
			before := relations(t, pool)

			refused(t, "--adopt", "", args("up")...)
			ok(t, "", args("up", "--adopt")...)
			if got := relations(t, pool); !strings.Contains(got, "idx_"+shipped.Layout.Table+"_claim") {
				t.Errorf("the claim's index is missing: %s", got)
			}
			if got := ok(t, "", args("status")...); strings.Contains(got, "pending") || strings.Count(got, "adopted: ") != 1 {
				t.Errorf("status after adopting: %s", got)
			}
			refused(t, "--adopt", "", args("up")...)
			ok(t, "", args("up", "--adopt")...)
			ok(t, "", args("down")...)
			if got := relations(t, pool); got != before {
				t.Errorf("down left %s, want the adopted table as it was: %s", got, before)
			}
			pgtest.Exec(t, pool, `SELECT FROM `+table)
		})
	}
}

// TestMigrateElsewhere has a table that programs find in a later schema of the search path: one in the first would hide it, and its
// events.
func TestMigrateElsewhere(t *testing.T) {
	t.Parallel()
	for _, layout := range []string{"standard", "doorito"} {
		t.Run(layout, func(t *testing.T) {
			t.Parallel()
			url := pgtest.URL(t)
			pgtest.Exec(t, pgtest.Connect(t, url), `CREATE SCHEMA app`)
			args := func(more ...string) []string {
				return append([]string{"migrate", "up", "--layout", layout, "--from"}, more...)
			}
			ok(t, "", args(url)...)
			path := url + "&search_path=app,public"
			for _, more := range [][]string{{path}, {path, "--adopt"}} {
				if layout == "doorito" || len(more) == 1 {
					refused(t, `schema "public"; name the schema with --schema`, "", args(more...)...)
				}
			}
			ok(t, "", args(path, "--schema", "public")...)
			ok(t, "", args(path, "--schema", "app")...)
		})
	}
}

// TestMigrateAdoptKeepsDeadLetters adopts both tables of a team that made the dead-letter table, too, and drops neither.
func TestMigrateAdoptKeepsDeadLetters(t *testing.T) {
	t.Parallel()
	pool, args := migrating(t, "packfinderz")
	ok(t, "", args("up")...)
	pgtest.Exec(t, pool, `DROP TABLE outbox_events_packfinderz_goose`)
	ok(t, "", args("up", "--adopt")...)
	if got := ok(t, "", args("up", "--adopt")...); !strings.Contains(got, "nothing to do") {
		t.Errorf("a second up: %s", got)
	}
	ok(t, "", args("down")...)
	pgtest.Exec(t, pool, `SELECT FROM outbox_events, outbox_dlq`)
}

// TestMigrateLooksFirst refuses, with a name and what to do, what would stop the migrations half-way, and writes nothing.
func TestMigrateLooksFirst(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ layout, state, says string }{
		"a type":        {"packfinderz", `CREATE TYPE event_type_enum AS ENUM ('a')`, `type "event_type_enum" is there already and has no value order_created`},
		"a function":    {"packfinderz", `CREATE FUNCTION outbox_dlq_append_only() RETURNS int LANGUAGE sql AS 'SELECT 1'`, `ALTER FUNCTION "outbox_dlq_append_only"() RENAME`},
		"an index":      {"modkit", `CREATE TABLE mine (id int); CREATE INDEX idx_modkit_outbox_events_claim ON mine (id)`, `on table "mine"`},
		"a constraint":  {"doorito", `CREATE TABLE mine (id int CONSTRAINT outbox_event_unique_event_type_idempotency_key UNIQUE)`, `on table "mine"`},
		"a version":     {"doorito", `CREATE TABLE outbox_event_doorito_goose (v int)`, `ALTER TABLE outbox_event_doorito_goose RENAME`},
		"dead letters":  {"packfinderz", `CREATE TABLE outbox_dlq (id int)`, `use --adopt to keep it`},
		"another table": {"modkit", `CREATE TABLE modkit_outbox_events (id uuid)`, `use --adopt to keep it`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.URL(t)
			pool := connect(t, url)
			pgtest.Exec(t, pool, c.state)
			before := relations(t, pool)
			refused(t, c.says, "", "migrate", "up", "--from", url, "--layout", c.layout)
			if strings.Contains(c.says, "--adopt") {
				refused(t, "RENAME TO", "", "migrate", "up", "--adopt", "--from", url, "--layout", c.layout)
			}
			if after := relations(t, pool); after != before {
				t.Errorf("%s became %s", before, after)
			}
		})
	}
}

// TestMigrateDropped says how to make again what somebody dropped.
func TestMigrateDropped(t *testing.T) {
	t.Parallel()
	for _, shipped := range shipped.All() {
		t.Run(shipped.Layout.Name, func(t *testing.T) {
			t.Parallel()
			pool, args := migrating(t, shipped.Layout.Name)
			ok(t, "", args("up")...)
			made := relations(t, pool)
			pgtest.Exec(t, pool, `DROP TABLE `+shipped.Layout.Table)
			versions := shipped.Layout.Table + "_" + shipped.Layout.Name + "_goose"
			for _, adopt := range [][]string{nil, {"--adopt"}} {
				refused(t, "run DELETE FROM "+versions+" WHERE version_id IN (1, ", "", args("up", adopt...)...)
			}
			pgtest.Exec(t, pool, `DELETE FROM `+versions+` WHERE version_id > 0 AND (version_id <> 2 OR NOT $1)`, shipped.Layout.DeadLetter != nil)
			ok(t, "", args("up")...)
			if got := relations(t, pool); got != made {
				t.Errorf("made again are %s, want %s", got, made)
			}
		})
	}
}

// TestMigrateAdoptedDropped has the tables be dropped by the team that had made them, as its own migrations do when they are
// taken back: what was added to them has to be added again.
func TestMigrateAdoptedDropped(t *testing.T) {
	t.Parallel()
	for _, shipped := range shipped.All() {
		t.Run(shipped.Layout.Name, func(t *testing.T) {
			t.Parallel()
			pool, args := migrating(t, shipped.Layout.Name)
			ok(t, "", args("up")...)
			made := relations(t, pool)
			versions := shipped.Layout.Table + "_" + shipped.Layout.Name + "_goose"
			pgtest.Exec(t, pool, `DELETE FROM `+versions+` WHERE version_id > 0`)
			ok(t, "", args("up", "--adopt")...)
			pgtest.Exec(t, pool, `DROP TABLE `+shipped.Layout.Table)
			if shipped.Layout.DeadLetter != nil {
				pgtest.Exec(t, pool, `DROP TABLE outbox_dlq; DROP FUNCTION outbox_dlq_append_only, outbox_events_append_only; DROP TYPE outbox_dlq_reason_enum, event_type_enum, aggregate_type_enum`)
			}
			before := relations(t, pool)
			got := run(t, "", args("up")...)
			advice := regexp.MustCompile(`DELETE FROM \w+ WHERE version_id IN \([0-9, ]+\)`).FindString(got.err)
			if got.code != 2 || advice == "" {
				t.Fatalf("exit code %d: %s", got.code, got.err)
			}
			if after := relations(t, pool); after != before {
				t.Errorf("%s became %s", before, after)
			}
			pgtest.Exec(t, pool, advice)
			ok(t, "", args("up")...)
			if got := relations(t, pool); got != made {
				t.Errorf("made again are %s, want %s", got, made)
			}
		})
	}
}

// TestMigrateTwoTables makes two tables of a layout in one schema. Of the names that the Doorito contract fixes, the first
// table has the contract's, whatever it is called itself; those of the second follow it.
func TestMigrateTwoTables(t *testing.T) {
	t.Parallel()
	for layout, want := range map[string][2][]string{
		"doorito": {
			{"unique_event_type_idempotency_key", "idx_outbox_event_pending_next_attempt"},
			{"billing_events_unique_event_type_idempotency_key", "billing_events_idx_pending_next_attempt"},
		},
		"modkit": {},
	} {
		t.Run(layout, func(t *testing.T) {
			t.Parallel()
			url := pgtest.URL(t)
			pool := connect(t, url)
			for i, table := range []string{"common_outboxevent", "billing_events"} {
				ok(t, "", "migrate", "up", "--from", url, "--layout", layout, "--table", table)
				for _, index := range want[i] {
					var on string
					if err := pool.QueryRow(t.Context(), `SELECT tablename FROM pg_indexes WHERE indexname = $1`, index).Scan(&on); err != nil || on != table {
						t.Errorf("index %s is on %q (%v), want %s", index, on, err, table)
					}
				}
			}
			ok(t, "", "migrate", "down", "--from", url, "--layout", layout, "--table", "billing_events")
			ok(t, "", "stats", "--from", url, "--layout", layout, "--table", "common_outboxevent")
		})
	}
}
