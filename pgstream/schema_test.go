package pgstream_test

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/pgstream"
)

// migrateTo applies the migrations that are numbered from..to.
func migrateTo(t *testing.T, pool *pgxpool.Pool, schema string, from, to int) {
	t.Helper()
	all, err := pgstream.Migrations(pgstream.Shape{Slots: 3})
	if err != nil {
		t.Fatal(err)
	}
	paths, err := fs.Glob(all, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	some := fstest.MapFS{}
	for _, path := range paths {
		var number int
		if _, err := fmt.Sscanf(path, "%d_", &number); err != nil {
			t.Fatalf("migration %s: %v", path, err)
		}
		if number < from || number > to {
			continue
		}
		file, err := fs.ReadFile(all, path)
		if err != nil {
			t.Fatal(err)
		}
		some[path] = &fstest.MapFile{Data: file}
	}
	pgtest.Migrate(t, pool, schema, some)
}

// TestNeeds compares the table of needs with what the migrations make, in both directions, and each
// line's number with the migration that makes it. It prints the table's lines as they should be.
func TestNeeds(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	since := make(map[string]int)
	for version := 1; version <= pgstream.NewestMigration(); version++ {
		migrateTo(t, pool, "", version, version)
		lines, err := pgstream.SchemaLines(t.Context(), pool)
		if err != nil {
			t.Fatal(err)
		}
		for line := range since {
			if !lines[line] {
				delete(since, line) // this migration changed or dropped it
			}
		}
		for line := range lines {
			if since[line] == 0 {
				since[line] = version
			}
		}
	}
	needs := pgstream.NeedLines()
	var report []string
	for line, version := range since {
		if needs[line] != version {
			report = append(report, fmt.Sprintf("pgstream/schema_needs.go: add {%d, %s},", version, line))
		}
	}
	for line, version := range needs {
		if since[line] != version {
			report = append(report, fmt.Sprintf("pgstream/schema_needs.go: remove {%d, %s},", version, line))
		}
	}
	slices.Sort(report)
	for _, line := range report {
		t.Error(line)
	}
}

// drop is the statement that removes what a need asks for.
func drop(t *testing.T, need pgstream.Need) string {
	t.Helper()
	table, part, _ := strings.Cut(need.Name, ".")
	switch need.Kind {
	case "table", "slot":
		return "DROP TABLE " + need.Name + " CASCADE"
	case "sequence", "function":
		return "DROP " + need.Kind + " " + need.Name + " CASCADE"
	case "column":
		return "ALTER TABLE " + table + " DROP COLUMN " + part + " CASCADE"
	case "foreign key":
		return "ALTER TABLE " + table + " DROP CONSTRAINT " + part
	case "trigger":
		return "DROP TRIGGER " + part + " ON " + table
	case "index":
		if table, found := strings.CutSuffix(need.Name, "_pkey"); found {
			return "ALTER TABLE " + table + " DROP CONSTRAINT " + need.Name + " CASCADE"
		}
		return "DROP INDEX " + need.Name + " CASCADE"
	}
	t.Fatalf("how is a %s dropped?", need.Kind)
	return ""
}

// undone runs statements in a transaction, looks, and takes them back.
func undone(t *testing.T, pool *pgxpool.Pool, look func(tx pgx.Tx), statements ...string) {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	for _, statement := range statements {
		if _, err := tx.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	look(tx)
}

// refusal fails unless an error is of a verdict, and returns what it lists.
func refusal(t *testing.T, err, verdict error) []pgstream.Difference {
	t.Helper()
	var refused *pgstream.SchemaError
	if !errors.Is(err, verdict) || !errors.As(err, &refused) {
		t.Fatalf("the verdict is %v; want %v", err, verdict)
	}
	return refused.Differences
}

// TestEachNeed drops everything that is needed, one at a time.
func TestEachNeed(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	migrateTo(t, pool, "", 1, pgstream.NewestMigration())
	if err := (pgstream.Stream{}).CheckSchema(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	for _, need := range pgstream.Needs() {
		if need.Name == "outbox_stream.slot" {
			continue // the database keeps the column that slots are made by
		}
		undone(t, pool, func(tx pgx.Tx) {
			verdict := pgstream.ErrSchemaIncomplete
			if need.Name == "outbox_schema_version()" {
				verdict = pgstream.ErrSchemaOlder // it is all that its migration makes
			}
			list := refusal(t, pgstream.Stream{}.CheckSchema(t.Context(), tx), verdict)
			missing := func(d pgstream.Difference) bool {
				return d.Object == need.Kind+" "+need.Name && d.Problem == "is missing" && d.Mend != ""
			}
			if !slices.ContainsFunc(list, missing) {
				t.Errorf("%s %s was dropped; the refusal lists %v", need.Kind, need.Name, list)
			}
		}, drop(t, need))
	}
}

func TestSchemaVerdicts(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	newest := pgstream.NewestMigration()
	migrateTo(t, pool, "", 1, newest)
	const guard = `CREATE FUNCTION guard() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
		CREATE TRIGGER guard BEFORE TRUNCATE ON outbox_stream EXECUTE FUNCTION guard()`
	for _, test := range []struct {
		does    string
		verdict error
		says    string
	}{
		{
			`DROP INDEX outbox_parked_due`, pgstream.ErrSchemaIncomplete,
			`outbox: the stream's schema is incomplete: index outbox_parked_due is missing; make it again with: ` +
				`CREATE INDEX CONCURRENTLY outbox_parked_due ON "outbox_parked" USING btree (subscription, shard, next_attempt_at) WHERE (state = 'retry'::text);`,
		},
		{
			`DROP INDEX outbox_dedupe_key`, pgstream.ErrSchemaIncomplete,
			`CREATE UNIQUE INDEX CONCURRENTLY outbox_dedupe_key ON "outbox_dedupe" USING btree (namespace, topic, dedupe_key) WHERE (dedupe_key IS NOT NULL);`,
		},
		{
			`UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'outbox_parked_due'::regclass`, pgstream.ErrSchemaIncomplete,
			`index outbox_parked_due is invalid; make it anew with: DROP INDEX "outbox_parked_due"; CREATE INDEX`,
		},
		{
			`DROP INDEX outbox_dedupe_key; CREATE INDEX outbox_dedupe_key ON outbox_dedupe (namespace, topic, dedupe_key) WHERE dedupe_key IS NOT NULL`,
			pgstream.ErrSchemaIncomplete, `index outbox_dedupe_key is "on outbox_dedupe`,
		},
		{
			// An index of the parent alone is not valid until every slot has it.
			`DROP INDEX outbox_stream_shard_seq; CREATE INDEX outbox_stream_shard_seq ON ONLY outbox_stream (shard, seq)`,
			pgstream.ErrSchemaIncomplete, `index outbox_stream_shard_seq is invalid`,
		},
		{
			`ALTER TABLE outbox_parked ALTER COLUMN reason TYPE varchar(10)`, pgstream.ErrSchemaIncomplete,
			`column outbox_parked.reason is "character varying(10)", and "text" is needed`,
		},
		{
			`ALTER TABLE outbox_stream ALTER COLUMN seq DROP DEFAULT`, pgstream.ErrSchemaIncomplete,
			`column outbox_stream.seq is "bigint not null", and "bigint not null default" is needed`,
		},
		{
			`ALTER TABLE outbox_stream DETACH PARTITION outbox_stream_2`, pgstream.ErrSchemaIncomplete,
			`slot outbox_stream_2 is missing; restore it from a backup`,
		},
		{
			`ALTER TABLE outbox_shards SET UNLOGGED`, pgstream.ErrSchemaIncomplete, `table outbox_shards is "unlogged"`,
		},
		{
			`ALTER TABLE outbox_stream ADD COLUMN colour text NOT NULL`, pgstream.ErrSchemaIncomplete,
			`column outbox_stream.colour takes no NULL, has no default, and is not known to this program; ` +
				`let it be NULL with: ALTER TABLE "outbox_stream" ALTER COLUMN "colour" DROP NOT NULL;`,
		},
		{
			`DROP TABLE outbox_dedupe; DROP INDEX outbox_parked_id, outbox_parked_state`, pgstream.ErrSchemaIncomplete,
			`; and 8 more, which outbox doctor lists`,
		},
		{`DROP TABLE outbox_stream, outbox_settings CASCADE`, pgstream.ErrNoStream, "there is no stream"},
		// What is more than is needed does no harm.
		{`ALTER TABLE outbox_stream ADD COLUMN colour text, ADD COLUMN size int NOT NULL DEFAULT 1`, nil, ""},
		{`ALTER TABLE outbox_subscriptions ALTER COLUMN destination SET DEFAULT 'stdout:'`, nil, ""},
		{guard, nil, ""},
	} {
		undone(t, pool, func(tx pgx.Tx) {
			err := pgstream.Stream{}.CheckSchema(t.Context(), tx)
			if !errors.Is(err, test.verdict) || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("%s: %v; want %v with %q", test.does, err, test.verdict, test.says)
			}
		}, test.does)
	}
	// A trigger that does not fire is as good as none.
	for does, says := range map[string]string{
		guard: "",
		guard + `; ALTER TABLE outbox_stream ENABLE ALWAYS TRIGGER guard`:  "",
		guard + `; ALTER TABLE outbox_stream DISABLE TRIGGER guard`:        `ALTER TABLE "outbox_stream" ENABLE TRIGGER "guard";`,
		guard + `; ALTER TABLE outbox_stream ENABLE REPLICA TRIGGER guard`: "trigger outbox_stream.guard is disabled",
		`SELECT`: "trigger outbox_stream.guard is missing",
	} {
		undone(t, pool, func(tx pgx.Tx) {
			err := pgstream.Stream{}.CheckSchemaWith(t.Context(), tx, "trigger", "outbox_stream.guard", "before truncate each statement calls guard")
			if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v; want %q", does, err, says)
			}
		}, does)
	}
}

// TestSchemaOlder runs this program on the schemas of the programs before it.
func TestSchemaOlder(t *testing.T) {
	t.Parallel()
	newest := pgstream.NewestMigration()
	pool := pgtest.Pool(t)
	for version := 1; version < newest; version++ {
		migrateTo(t, pool, "", version, version)
		err := pgstream.Stream{}.CheckSchema(t.Context(), pool)
		if len(refusal(t, err, pgstream.ErrSchemaOlder)) == 0 || !strings.HasSuffix(err.Error(), "; run outbox migrate up") {
			t.Errorf("at migration %d: %v", version, err)
		}
		if _, err := pgstream.Open(t.Context(), pool, pgstream.Stream{}, pgstream.Config{}); !errors.Is(err, pgstream.ErrSchemaOlder) {
			t.Errorf("at migration %d a store opens: %v", version, err)
		}
		// What was dropped besides is not mended by migrations, and is said first.
		undone(t, pool, func(tx pgx.Tx) {
			list := refusal(t, pgstream.Stream{}.CheckSchema(t.Context(), tx), pgstream.ErrSchemaIncomplete)
			if len(list) != 1 || list[0].Object != "index outbox_parked_due" {
				t.Errorf("at migration %d without an index: %v", version, list)
			}
		}, `DROP INDEX outbox_parked_due`)
	}
	migrateTo(t, pool, "", newest, newest)
	if err := (pgstream.Stream{}).CheckSchema(t.Context(), pool); err != nil {
		t.Error(err)
	}
	// All is there, but the last migration did not come to its end.
	undone(t, pool, func(tx pgx.Tx) {
		err := pgstream.Stream{}.CheckSchema(t.Context(), tx)
		refusal(t, err, pgstream.ErrSchemaOlder)
		if want := fmt.Sprintf("it is at migration 4 of %d", newest); !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}, `CREATE OR REPLACE FUNCTION outbox_schema_version() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT 4'`)
}

// TestSchemaNewer runs the programs before this one on its schema, and this one on a later one.
func TestSchemaNewer(t *testing.T) {
	t.Parallel()
	newest := pgstream.NewestMigration()
	pool := pgtest.Pool(t)
	migrateTo(t, pool, "", 1, newest)
	for version := 1; version < newest; version++ {
		if err := (pgstream.Stream{}).CheckSchemaAs(t.Context(), pool, version); err != nil {
			t.Errorf("a program of migration %d refuses this schema: %v", version, err)
		}
	}
	later := fmt.Sprintf(`CREATE OR REPLACE FUNCTION outbox_schema_version() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT %d'`, newest+1)
	for change, compatible := range map[string]bool{
		`ALTER TABLE outbox_parked ADD COLUMN colour text`:                                true,
		`ALTER TABLE outbox_parked ADD COLUMN colour text NOT NULL DEFAULT 'red'`:         true,
		`ALTER TABLE outbox_parked ADD COLUMN colour text NOT NULL`:                       false,
		`ALTER TABLE outbox_parked DROP COLUMN reason`:                                    false,
		`ALTER TABLE outbox_parked ALTER COLUMN reason TYPE jsonb USING to_jsonb(reason)`: false,
		`DROP INDEX outbox_parked_due`:                                                    false,
	} {
		undone(t, pool, func(tx pgx.Tx) {
			err := pgstream.Stream{}.CheckSchema(t.Context(), tx)
			if compatible {
				if err != nil {
					t.Errorf("%s: %v", change, err)
				}
				return
			}
			refusal(t, err, pgstream.ErrSchemaNewer)
			if !strings.HasSuffix(err.Error(), "; upgrade the program") {
				t.Errorf("%s: %v", change, err)
			}
		}, later, change)
	}
}

// TestSchemaOfOthers looks at the stream that is asked for, and at no other.
func TestSchemaOfOthers(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	newest := pgstream.NewestMigration()
	migrateTo(t, pool, `the "shop"`, 1, newest)
	migrateTo(t, pool, "", 1, newest)
	pgtest.Exec(t, pool, `DROP INDEX outbox_parked_due`)
	if err := (pgstream.Stream{Schema: `the "shop"`}).CheckSchema(t.Context(), pool); err != nil {
		t.Error(err)
	}
	refusal(t, pgstream.Stream{}.CheckSchema(t.Context(), pool), pgstream.ErrSchemaIncomplete)
	if err := (pgstream.Stream{Schema: "nowhere"}).CheckSchema(t.Context(), pool); !errors.Is(err, pgstream.ErrNoStream) {
		t.Errorf("a schema that is not there: %v", err)
	}
	// By the search path, and of a schema that is not first in it.
	undone(t, pool, func(tx pgx.Tx) {
		if err := (pgstream.Stream{}).CheckSchema(t.Context(), tx); err != nil {
			t.Error(err)
		}
	}, `CREATE SCHEMA empty`, `SET LOCAL search_path TO empty, "the ""shop""", public`)
	undone(t, pool, func(tx pgx.Tx) {
		err := pgstream.Stream{Schema: `the "shop"`}.CheckSchema(t.Context(), tx)
		if err == nil || !strings.Contains(err.Error(), `ON "the ""shop"""."outbox_parked"`) {
			t.Errorf("%v", err)
		}
	}, `DROP INDEX "the ""shop""".outbox_parked_due`)
}

// TestSchemaOfFewRights is looked at by a role that may do nothing.
func TestSchemaOfFewRights(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	migrateTo(t, pool, "", 1, pgstream.NewestMigration())
	pgtest.Exec(t, pool, `REVOKE ALL ON ALL FUNCTIONS IN SCHEMA public FROM PUBLIC`)
	role := pgtest.AsRole(t, pool)
	if err := (pgstream.Stream{}).CheckSchema(t.Context(), role); err != nil {
		t.Error(err)
	}
	pgtest.Exec(t, pool, `DROP INDEX outbox_parked_due`)
	refusal(t, pgstream.Stream{}.CheckSchema(t.Context(), role), pgstream.ErrSchemaIncomplete)
}

// TestSchemaOfStores refuses a store, and a repair, on half a schema.
func TestSchemaOfStores(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	migrateTo(t, pool, "", 1, pgstream.NewestMigration())
	pgtest.Exec(t, pool, `DROP INDEX outbox_parked_due`)
	if _, err := pgstream.Open(t.Context(), pool, pgstream.Stream{}, pgstream.Config{}); !errors.Is(err, pgstream.ErrSchemaIncomplete) {
		t.Errorf("a store: %v", err)
	}
	if _, err := (pgstream.Stream{}).Repair(t.Context(), pool, pgstream.RepairOptions{}); !errors.Is(err, pgstream.ErrSchemaIncomplete) {
		t.Errorf("a repair: %v", err)
	}
	// The statement of the refusal mends it.
	var refused *pgstream.SchemaError
	if err := (pgstream.Stream{}).CheckSchema(t.Context(), pool); !errors.As(err, &refused) {
		t.Fatal(err)
	}
	_, statement, _ := strings.Cut(refused.Differences[0].Mend, ": ")
	pgtest.Exec(t, pool, statement)
	store, err := pgstream.Open(t.Context(), pool, pgstream.Stream{}, pgstream.Config{})
	if err != nil {
		t.Fatal(err)
	}
	store.Close()
}

// TestSchemaVersion holds the number that the schema says against the migrations.
func TestSchemaVersion(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	migrateTo(t, pool, "", 1, pgstream.NewestMigration())
	var version int
	if err := pool.QueryRow(t.Context(), `SELECT outbox_schema_version()`).Scan(&version); err != nil {
		t.Fatal(err)
	}
	if newest := pgstream.NewestMigration(); version != newest {
		t.Errorf("outbox_schema_version is %d; let migration %d replace it with its own number", version, newest)
	}
}

// TestSettingsOfAnotherShape loads the settings of another stream, or none: a dump that was loaded in part, or into a stream
// that is not like its own.
func TestSettingsOfAnotherShape(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ put, want, mend string }{
		{`DELETE FROM outbox_settings`, "outbox_settings has no row",
			`INSERT INTO "outbox_settings" (slots, slot_seconds, shards) VALUES (5, 3600, 4)`},
		{`UPDATE outbox_settings SET shards = 2`, "has 5 slots of 1h0m0s and 2 shards, and the tables are made for 5 slots of 1h0m0s and 4 shards",
			`UPDATE "outbox_settings" SET slots = 5, slot_seconds = 3600, shards = 4`},
		{`UPDATE outbox_settings SET slots = 4`, "has 4 slots", `UPDATE "outbox_settings" SET slots = 5, slot_seconds = 3600, shards = 4`},
		{`UPDATE outbox_settings SET slot_seconds = 60`, "slots of 1m0s", `UPDATE "outbox_settings" SET slots = 5, slot_seconds = 3600, shards = 4`},
	} {
		h := newHarness(t, pgstream.Shape{Slots: 5, SlotLength: time.Hour, Shards: 4})
		pgtest.Exec(t, h.pool, c.put)
		err := (pgstream.Stream{}).CheckSchema(t.Context(), h.pool)
		if !errors.Is(err, pgstream.ErrSchemaIncomplete) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.mend) {
			t.Errorf("after %s: %v", c.put, err)
			continue
		}
		if _, err := (pgstream.Stream{}).Repair(t.Context(), h.pool, pgstream.RepairOptions{}); !errors.Is(err, pgstream.ErrSchemaIncomplete) {
			t.Errorf("repaired after %s: %v", c.put, err)
		}
		pgtest.Exec(t, h.pool, c.mend)
		if err := (pgstream.Stream{}).CheckSchema(t.Context(), h.pool); err != nil {
			t.Errorf("after %s and %s: %v", c.put, c.mend, err)
		}
	}
}

// TestMigrateFindsWhatIsGone migrates a stream that has lost a table: success would be a lie.
func TestMigrateFindsWhatIsGone(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	if err := pgstream.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, pool, `DROP TABLE outbox_parked CASCADE`)
	if err := pgstream.Migrate(t.Context(), pool); !errors.Is(err, pgstream.ErrSchemaIncomplete) {
		t.Errorf("a stream without outbox_parked: %v", err)
	}
}
