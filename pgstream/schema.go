package pgstream

// What is in the schema, and what this program needs there.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Why a stream's schema is refused. A *SchemaError says what differs.
var (
	// ErrSchemaOlder means that migrations are missing.
	ErrSchemaOlder = errors.New("the stream's schema is older than this program; run outbox migrate up")
	// ErrSchemaNewer means that a later program has migrated the stream, and changed what this
	// one needs. A newer schema that still has all of it is not refused.
	ErrSchemaNewer = errors.New("this program is older than the stream's schema; upgrade the program")
	// ErrSchemaIncomplete means that something is missing that a migration has made.
	ErrSchemaIncomplete = errors.New("the stream's schema is incomplete")
)

// object is something in the schema.
type object struct{ kind, name, detail string }

// identity is what an object is found by: its detail may be wrong.
func (o object) identity() string { return o.kind + " " + o.name }

// satisfiedBy reports whether an object does for a need. A default that nobody asked for does no harm.
func (o object) satisfiedBy(is object) bool {
	return is.detail == o.detail || o.kind == "column" && is.detail == o.detail+" default"
}

// schemaSQL lists what the schema holds, from the catalogs alone, which every role may read. $1 and
// $2 are tables that tell which schema it is, $3 the names to look for, NULL for all. The kinds
// "version", "made for", "readable" and "path" are not objects: they say which migration the schema is at, which
// shape its tables have, that this role may read the settings, and which functions do not look into it.
const schemaSQL = `
WITH place AS (
  SELECT relnamespace AS schema FROM pg_class WHERE oid = coalesce(to_regclass($1), to_regclass($2))
), relations AS (
  SELECT c.oid, c.relname::text AS name, c.relkind, c.relpersistence
  FROM pg_class AS c, place
  WHERE c.relnamespace = place.schema AND c.relkind IN ('r', 'p', 'S') AND NOT c.relispartition
    AND ($3::text[] IS NULL OR c.relname = ANY($3::text[]))
), slots AS (
  SELECT c.oid, c.relname::text AS name, c.relpersistence FROM relations AS r
  JOIN pg_inherits AS i ON i.inhparent = r.oid AND NOT i.inhdetachpending
  JOIN pg_class AS c ON c.oid = i.inhrelid
  WHERE r.name = 'outbox_stream'
)
SELECT CASE WHEN relkind = 'S' THEN 'sequence' ELSE 'table' END AS kind, name,
  concat_ws(' ', CASE WHEN relkind = 'p' THEN 'partitioned' END, CASE WHEN relpersistence <> 'p' THEN 'unlogged' END,
    (SELECT format_type(seqtypid, NULL) FROM pg_sequence WHERE seqrelid = oid)) AS detail
FROM relations
UNION ALL
SELECT 'slot', name, CASE WHEN relpersistence <> 'p' THEN 'unlogged' ELSE '' END FROM slots
UNION ALL
SELECT 'column', r.name || '.' || a.attname, concat_ws(' ', format_type(a.atttypid, a.atttypmod),
  (SELECT 'collate ' || quote_ident(l.collname) FROM pg_collation AS l JOIN pg_type AS t ON t.oid = a.atttypid
   WHERE l.oid = a.attcollation AND l.oid <> t.typcollation),
  CASE WHEN a.attnotnull THEN 'not null' END,
  CASE WHEN a.attgenerated <> '' OR a.attidentity <> '' THEN 'generated' WHEN a.atthasdef THEN 'default' END)
FROM relations AS r JOIN pg_attribute AS a ON a.attrelid = r.oid
WHERE r.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
UNION ALL
SELECT 'index', c.relname::text, concat_ws(' ', CASE WHEN NOT (i.indisvalid AND i.indisready AND i.indislive) THEN 'invalid' END,
  CASE WHEN i.indisunique THEN 'unique' END, 'on ' || r.name, substring(pg_get_indexdef(c.oid) FROM '(USING .*)$'))
FROM relations AS r JOIN pg_index AS i ON i.indrelid = r.oid JOIN pg_class AS c ON c.oid = i.indexrelid
UNION ALL
SELECT 'foreign key', r.name || '.' || k.conname, concat_ws(' ', 'references ' || f.relname,
  CASE k.confdeltype WHEN 'c' THEN 'on delete cascade' END)
FROM relations AS r JOIN pg_constraint AS k ON k.conrelid = r.oid AND k.contype = 'f' JOIN pg_class AS f ON f.oid = k.confrelid
UNION ALL
SELECT 'trigger', o.name || '.' || g.tgname, concat_ws(' ', CASE WHEN g.tgenabled IN ('D', 'R') THEN 'disabled' END,
  CASE WHEN g.tgtype & 66 = 2 THEN 'before' WHEN g.tgtype & 66 = 0 THEN 'after' ELSE 'instead of' END,
  CASE WHEN g.tgtype & 4 > 0 THEN 'insert' END, CASE WHEN g.tgtype & 16 > 0 THEN 'update' END,
  CASE WHEN g.tgtype & 8 > 0 THEN 'delete' END, CASE WHEN g.tgtype & 32 > 0 THEN 'truncate' END,
  CASE WHEN g.tgtype & 1 > 0 THEN 'each row' ELSE 'each statement' END, 'calls ' || p.proname)
FROM (SELECT oid, name FROM relations UNION ALL SELECT oid, name FROM slots) AS o
JOIN pg_trigger AS g ON g.tgrelid = o.oid AND NOT g.tgisinternal JOIN pg_proc AS p ON p.oid = g.tgfoid
UNION ALL
SELECT 'function', format('%s(%s)', p.proname, oidvectortypes(p.proargtypes)), 'returns ' || format_type(p.prorettype, NULL)
FROM pg_proc AS p, place WHERE p.pronamespace = place.schema AND ($3::text[] IS NULL OR p.proname = ANY($3::text[]))
UNION ALL
SELECT 'path', p.oid::regprocedure::text, quote_ident(n.nspname)
FROM place JOIN pg_namespace AS n ON n.oid = place.schema JOIN pg_proc AS p ON p.pronamespace = n.oid, unnest(p.proconfig) AS c
WHERE ($3::text[] IS NULL OR p.proname = ANY($3::text[])) AND c LIKE 'search_path=%' AND c <> 'search_path=' || quote_ident(n.nspname) || ', pg_temp'
UNION ALL
SELECT 'version', substring(p.prosrc FROM '[0-9]+'), ''
FROM pg_proc AS p, place WHERE p.pronamespace = place.schema AND p.proname = 'outbox_schema_version' AND p.pronargs = 0
UNION ALL
SELECT 'made for', concat_ws(' ', substring(pg_get_expr(d.adbin, d.adrelid) FROM '% \(?''?([0-9]+)'), substring(pg_get_expr(d.adbin, d.adrelid) FROM '/ \(?''?([0-9]+)'),
  substring(pg_get_constraintdef(k.oid) FROM 'shard <= ([0-9]+)')::int + 1), ''
FROM relations AS r
JOIN pg_attribute AS a ON a.attrelid = r.oid AND a.attname = 'slot' JOIN pg_attrdef AS d ON d.adrelid = r.oid AND d.adnum = a.attnum
JOIN pg_constraint AS k ON k.conrelid = r.oid AND k.conname = 'outbox_stream_shard_check'
WHERE r.name = 'outbox_stream'
UNION ALL
SELECT 'readable', '', '' FROM relations WHERE name = 'outbox_settings' AND has_table_privilege(oid, 'SELECT')`

// schema is what was found.
type schema struct {
	objects map[string]object // by identity
	version int               // zero if it does not say
	slots   int
	// made is the shape that the tables have, and settings what outbox_settings says: nil if it has no
	// row. Both are nil where that cannot be told.
	made, settings *Shape
	readable       bool
	// paths are functions that look for their tables in another schema.
	paths []difference
}

// readSchema lists what is there of these names, or of all.
func (s Stream) readSchema(ctx context.Context, db Querier, names []string) (*schema, error) {
	rows, _ := db.Query(ctx, schemaSQL, s.table("outbox_stream"), s.table("outbox_settings"), names)
	found := &schema{objects: make(map[string]object)}
	var o object
	_, err := pgx.ForEachRow(rows, []any{&o.kind, &o.name, &o.detail}, func() error {
		switch o.kind {
		case "version":
			_, err := fmt.Sscan(o.name, &found.version)
			return err
		case "readable":
			found.readable = true
			return nil
		case "made for":
			made, seconds := Shape{}, 0
			if n, _ := fmt.Sscan(o.name, &made.Slots, &seconds, &made.Shards); n == 3 {
				made.SlotLength = time.Duration(seconds) * time.Second
				found.made = &made
			}
			return nil
		case "path":
			found.paths = append(found.paths, misled(o))
			return nil
		case "slot":
			found.slots++
		}
		found.objects[o.identity()] = o
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("outbox: look at the stream's schema: %w", err)
	}
	if len(found.objects) == 0 {
		return nil, fmt.Errorf("outbox: %w", ErrNoStream)
	}
	// A role that only emits may not know how many slots there should be: those that are there will do.
	for _, column := range []string{"slots", "slot_seconds", "shards"} {
		_, there := found.objects["column outbox_settings."+column]
		found.readable = found.readable && there
	}
	if !found.readable {
		return found, nil
	}
	shape, err := s.readShape(ctx, db)
	switch {
	case err == nil:
		found.settings, found.slots = &shape, shape.Slots
	case !errors.Is(err, pgx.ErrNoRows):
		return nil, err
	}
	return found, nil
}

// CheckSchema compares what is in the schema with what this program needs. It returns ErrNoStream, or a *SchemaError that
// matches ErrSchemaOlder, ErrSchemaNewer or ErrSchemaIncomplete. It reads the catalogs and writes nothing.
func (s Stream) CheckSchema(ctx context.Context, db Querier) error {
	found, err := s.readSchema(ctx, db, neededNames())
	if err != nil {
		return err
	}
	return s.judge(found, needs, newestMigration())
}

// judge compares a schema with needs, as a program does whose newest migration is this one.
func (s Stream) judge(found *schema, needs []need, newest int) error {
	// differs are what is not as it should be, by the migration that makes it; holes are those that
	// a migration has made that was applied.
	differs := s.compare(found, needs)
	at := found.version
	if at == 0 {
		at = appliedUpTo(differs, needs)
	}
	refusal := &SchemaError{Version: found.version, Program: newest}
	for _, d := range differs {
		if d.since <= at {
			refusal.Differences = append(refusal.Differences, d.Difference)
		}
	}
	switch {
	case at > newest:
		if len(differs) == 0 {
			return nil // a program of the version before may go on
		}
		refusal.Verdict = ErrSchemaNewer
	case len(refusal.Differences) > 0:
		refusal.Verdict = ErrSchemaIncomplete
	case at < newest:
		refusal.Verdict = ErrSchemaOlder
		for _, d := range differs {
			refusal.Differences = append(refusal.Differences, d.Difference)
		}
	default:
		return nil
	}
	return refusal
}

// appliedUpTo is the last migration of which anything is there, of a schema that does not say.
func appliedUpTo(differs []difference, needs []need) int {
	missing := make(map[int]int)
	for _, d := range differs {
		missing[d.since]++
	}
	made := make(map[int]int)
	for _, n := range needs {
		if !n.eachSlot() {
			made[n.since]++
		}
	}
	last := 0
	for version, n := range made {
		if missing[version] < n {
			last = max(last, version)
		}
	}
	return last
}

// difference is a Difference with the migration that would have made it right.
type difference struct {
	since int
	Difference
}

// compare lists what is needed and not there, or otherwise.
func (s Stream) compare(found *schema, needs []need) (list []difference) {
	known := make(map[string]bool)
	for _, n := range needs {
		for _, want := range n.expand(found.slots) {
			known[want.identity()] = true
			is, ok := found.objects[want.identity()]
			if !ok || !want.satisfiedBy(is) {
				list = append(list, difference{n.since, s.explain(want, is, ok, n.since)})
			}
		}
	}
	if found.readable && found.made != nil {
		list = append(list, s.compareShapes(found.made, found.settings)...)
	}
	return slices.Concat(list, found.paths, s.unknownColumns(found, known))
}

// compareShapes finds settings that are not those of the tables: a load of a dump did not come to its end, or
// the dump is of a stream with another shape.
func (s Stream) compareShapes(made, settings *Shape) []difference {
	const table = "table outbox_settings"
	seconds := int(made.SlotLength / time.Second)
	switch {
	case settings == nil:
		return []difference{{1, Difference{
			Object: table, Problem: "has no row; was a dump loaded in part?",
			Mend: fmt.Sprintf("load the whole of it, or put the row back with: INSERT INTO %s (slots, slot_seconds, shards) VALUES (%d, %d, %d);",
				s.table("outbox_settings"), made.Slots, seconds, made.Shards),
		}}}
	case *settings != *made:
		return []difference{{1, Difference{
			Object: table, Problem: fmt.Sprintf("has %s, and the tables are made for %s; was a dump of another stream loaded?", settings, made),
			Mend: fmt.Sprintf("load it into a stream of its own shape, or keep these tables with: UPDATE %s SET slots = %d, slot_seconds = %d, shards = %d;",
				s.table("outbox_settings"), made.Slots, seconds, made.Shards),
		}}}
	}
	return nil
}

// unknownColumns are columns, in tables of this program, that it does not know and that its INSERTs would
// have to give a value: only a later program makes them.
func (s Stream) unknownColumns(found *schema, known map[string]bool) (list []difference) {
	for identity, o := range found.objects {
		table, column, _ := strings.Cut(o.name, ".")
		if o.kind == "column" && known["table "+table] && !known[identity] && strings.HasSuffix(o.detail, " not null") {
			list = append(list, difference{0, Difference{
				Object: identity, Problem: "takes no NULL, has no default, and is not known to this program",
				Mend: fmt.Sprintf("let it be NULL with: ALTER TABLE %s ALTER COLUMN %s DROP NOT NULL;", s.table(table), Stream{}.table(column)),
			}})
		}
	}
	slices.SortFunc(list, func(a, b difference) int { return strings.Compare(a.Object, b.Object) })
	return list
}
