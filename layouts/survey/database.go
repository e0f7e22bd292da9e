package survey

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// key identifies an object.
type key struct {
	kind Kind
	name string
}

// present is what the database has under an object's name.
type present struct {
	is     string // what it is, in words
	table  string // of an index
	values []string
	body   string
}

// thereSQL finds what would keep the objects of kinds $1 and names $2 from being created. Tables, indexes and types
// share one namespace with all relations and types.
const thereSQL = `
WITH here AS (SELECT oid FROM pg_namespace WHERE nspname = current_schema()),
     wanted AS (SELECT * FROM unnest($1::text[], $2::text[]) AS w(kind, name))
SELECT w.kind, w.name,
  CASE c.relkind WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view'
    WHEN 'i' THEN 'index' WHEN 'I' THEN 'index' WHEN 'S' THEN 'sequence' WHEN 'f' THEN 'foreign table' ELSE 'type' END,
  coalesce((SELECT t.relname::text FROM pg_index AS i JOIN pg_class AS t ON t.oid = i.indrelid WHERE i.indexrelid = c.oid), ''),
  '{}'::text[], ''
FROM wanted AS w JOIN pg_class AS c ON c.relname = w.name AND c.relnamespace = (SELECT oid FROM here) WHERE w.kind <> 'function'
UNION ALL
SELECT w.kind, w.name, CASE t.typtype WHEN 'e' THEN 'enum' ELSE 'type' END, '',
  ARRAY(SELECT e.enumlabel::text FROM pg_enum AS e WHERE e.enumtypid = t.oid ORDER BY e.enumsortorder), ''
FROM wanted AS w JOIN pg_type AS t ON t.typname = w.name AND t.typnamespace = (SELECT oid FROM here) AND t.typrelid = 0
WHERE w.kind IN ('type', 'table')
UNION ALL
SELECT w.kind, w.name, 'function', '', '{}', p.prosrc
FROM wanted AS w JOIN pg_proc AS p ON p.proname = w.name AND p.pronamespace = (SELECT oid FROM here) AND p.pronargs = 0 WHERE w.kind = 'function'`

// there returns what the database has under the names of a list.
func (s Set) there(ctx context.Context, db DB, list []Object) (map[key]present, error) {
	var kinds, names []string
	for _, o := range list {
		kinds, names = append(kinds, string(o.Kind)), append(names, o.Name)
	}
	rows, _ := db.Query(ctx, thereSQL, kinds, names) // the rows say what failed
	found := make(map[key]present)
	var k key
	var p present
	_, err := pgx.ForEachRow(rows, []any{&k.kind, &k.name, &p.is, &p.table, &p.values, &p.body}, func() error {
		found[k] = p
		p.values = nil // the next row must not share them
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for the names of the migrations: %w", err)
	}
	return found, nil
}

// shownValues is how many missing values of an enum are named.
const shownValues = 3

// differs says how something differs from what a migration would create, and what to do about it.
func (p present) differs(o Object) string {
	name := quoted(o.Name)
	switch {
	case o.Kind == Table: // misfits judges tables
		return ""
	case o.Kind == Type && p.is == "enum":
		missing := slices.DeleteFunc(slices.Clone(o.values), func(value string) bool { return slices.Contains(p.values, value) })
		if len(missing) == 0 {
			return ""
		}
		shown := strings.Join(missing[:min(shownValues, len(missing))], ", ")
		if more := len(missing) - shownValues; more > 0 {
			shown += fmt.Sprintf(" and %d more", more)
		}
		return fmt.Sprintf("type %[1]s is there already and has no value %[2]s: rename it (ALTER TYPE %[1]s RENAME TO …), or, if it is meant "+
			"to be the outbox's, add what it lacks (ALTER TYPE %[1]s ADD VALUE …)", name, shown)
	case o.Kind == Function && p.body == o.body, o.Kind == Index && p.is == "index" && p.table == o.table:
		return ""
	case o.Kind == Function:
		return fmt.Sprintf("function %[1]s() is there already and does something else: rename it (ALTER FUNCTION %[1]s() RENAME TO …)", name)
	case o.Kind == Index && p.is == "index":
		return fmt.Sprintf("index %[1]s is there already, on table %[2]s: rename it (ALTER INDEX %[1]s RENAME TO …)", name, quoted(p.table))
	}
	return fmt.Sprintf("%s is the name of a %s, and the outbox needs it for its %s: rename what has it", name, p.is, o.Kind)
}

// versionsSQL reads the columns of table $1 that goose needs, as goose creates them.
const versionsSQL = `
SELECT c.relkind = 'r', a.attname::text, coalesce(a.attname = 'version_id' AND a.atttypid IN ('int8'::regtype, 'int4'::regtype)
  OR a.attname = 'is_applied' AND a.atttypid = 'bool'::regtype OR a.attname IN ('id', 'tstamp'), false)
FROM pg_class AS c LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relname = $1 AND c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())`

// noted returns the versions that goose has recorded as applied. Unlike goose it writes nothing.
func (s Set) noted(ctx context.Context, db DB) ([]int64, error) {
	rows, _ := db.Query(ctx, versionsSQL, s.Versions) // the rows say what failed
	missing := []string{"id", "version_id", "is_applied", "tstamp"}
	exists, isTable := false, true
	var name *string
	var fits bool
	_, err := pgx.ForEachRow(rows, []any{&isTable, &name, &fits}, func() error {
		exists = true
		if name != nil && fits {
			missing = slices.DeleteFunc(missing, func(want string) bool { return want == *name })
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("look at %s: %w", s.Versions, err)
	case !exists:
		return nil, nil
	case !isTable:
		return nil, fmt.Errorf("%w: goose records applied migrations in a table %s, but something else has this name; rename it, and migrate again",
			ErrConflict, s.Versions)
	case len(missing) > 0:
		return nil, fmt.Errorf("%w: table %s, in which goose records applied migrations, is not goose's: it has no column %s "+
			"of goose's type; rename it (ALTER TABLE %s RENAME TO …), and migrate again",
			ErrConflict, s.Versions, strings.Join(missing, ", "), s.Versions)
	}
	rows, _ = db.Query(ctx, `SELECT version_id FROM `+s.Versions+` WHERE is_applied`) // the rows say what failed
	versions, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", s.Versions, err)
	}
	return versions, nil
}
