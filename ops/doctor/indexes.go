package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/internal/sqlplan"
)

// invalidSQL finds indexes of the tables $1 that a failed CREATE INDEX CONCURRENTLY left behind, or that one is
// building now.
const invalidSQL = `
SELECT i.indexrelid::regclass::text, i.indisunique, EXISTS (SELECT FROM pg_stat_progress_create_index AS p WHERE p.index_relid = i.indexrelid)
FROM pg_index AS i
WHERE i.indrelid = ANY(SELECT to_regclass(name)::oid FROM unnest($1::text[]) AS name) AND NOT (i.indisvalid AND i.indisready AND i.indislive)
ORDER BY 1`

func lookAtIndexes(ctx context.Context, e *exam) (string, error) {
	tables, err := e.tables(ctx)
	if err != nil {
		return "", err
	}
	if err := e.invalidIndexes(ctx, tables); err != nil {
		return "", err
	}
	return "every index that relays and emits need is there and valid", e.patient.indexes(ctx, e)
}

func (e *exam) invalidIndexes(ctx context.Context, tables []string) error {
	rows, _ := e.tx.Query(ctx, invalidSQL, tables) // the rows say what failed
	var name string
	var unique, building bool
	_, err := pgx.ForEachRow(rows, []any{&name, &unique, &building}, func() error {
		switch {
		case building:
			e.add(Note, fmt.Sprintf("index %s is being built", name), "Wait until it is: SELECT * FROM pg_stat_progress_create_index;")
		case unique:
			e.add(Problem, fmt.Sprintf("unique index %s is invalid: building it failed, so that the table has duplicates; "+
				"it costs writes and keeps nothing unique for certain", name),
				fmt.Sprintf("Remove the duplicates, then REINDEX INDEX CONCURRENTLY %s; or give it up: DROP INDEX "+
					"CONCURRENTLY %s;", name, name))
		default:
			e.add(Warning, fmt.Sprintf("index %s is invalid: building it failed or was interrupted; it costs writes and "+
				"serves no query", name),
				fmt.Sprintf("REINDEX INDEX CONCURRENTLY %s;", name))
		}
		return nil
	})
	return err
}

func (t tablePatient) indexes(ctx context.Context, e *exam) error {
	for _, key := range t.layout.Keys() {
		found, err := e.isUnique(ctx, t.table(), key.Columns)
		if err != nil {
			return err
		}
		if !found {
			e.add(Problem, fmt.Sprintf("%s is not unique in %s: there is no valid unique index on %s, and emit would write it twice",
				key.For, t.table(), strings.Join(key.Columns, ", ")), key.Index)
		}
	}
	// With these settings the planner uses an index if it can; if it still reads or sorts the table, there is none.
	if _, err := e.tx.Exec(ctx, sqlplan.ByIndex); err != nil {
		return err
	}
	for _, need := range t.layout.Needs() {
		served, err := e.servedByIndex(ctx, need.Query)
		if err != nil {
			return err
		}
		if !served {
			e.add(Warning, fmt.Sprintf("no valid index of %s serves %s: it reads or sorts more with every event that is kept",
				t.table(), need.For), need.Index)
		}
	}
	return nil
}

// isUnique reports whether a table has a valid unique index on exactly these columns.
func (e *exam) isUnique(ctx context.Context, table string, columns []string) (bool, error) {
	rows, _ := e.tx.Query(ctx, `
SELECT ARRAY(SELECT a.attname::text FROM unnest(i.indkey[0:i.indnkeyatts - 1]) WITH ORDINALITY AS k(attnum, n)
  JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.attnum ORDER BY k.n)
FROM pg_index AS i
WHERE i.indrelid = to_regclass($1) AND i.indisvalid AND i.indisready AND i.indisunique AND 0 <> ALL(i.indkey)`, table) // the rows say what failed
	list, err := pgx.CollectRows(rows, pgx.RowTo[[]string])
	if err != nil {
		return false, err
	}
	wanted := slices.Sorted(slices.Values(columns))
	return slices.ContainsFunc(list, func(has []string) bool { return slices.Equal(slices.Sorted(slices.Values(has)), wanted) }), nil
}

// servedByIndex asks the planner, which knows best what an index is good for.
func (e *exam) servedByIndex(ctx context.Context, sql string) (bool, error) {
	plan, err := sqlplan.Explain(ctx, e.tx, sql)
	return err == nil && !plan.Has("Seq Scan", "Bitmap Heap Scan", "Sort", "Incremental Sort"), err
}

// indexes has nothing to add: the check layout compares the stream's indexes with what its migrations make.
func (t streamPatient) indexes(context.Context, *exam) error { return nil }
