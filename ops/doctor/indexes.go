package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/internal/sqlplan"
	"github.com/packfinderz/outbox/ops/internal/query"
)

// invalidSQL are the indexes of the tables $1 that a CREATE INDEX CONCURRENTLY left behind
// when it failed, or that one is building now.
const invalidSQL = `
SELECT i.indexrelid::regclass::text, i.indisunique, EXISTS (SELECT FROM pg_stat_progress_create_index AS p WHERE p.index_relid = i.indexrelid)
FROM pg_index AS i
WHERE i.indrelid = ANY(SELECT to_regclass(name)::oid FROM unnest($1::text[]) AS name) AND NOT (i.indisvalid AND i.indisready AND i.indislive)
ORDER BY 1`

func lookAtIndexes(ctx context.Context, e *exam) error {
	relations, err := withSlots(ctx, e.tx, e.patient)
	if err != nil {
		return err
	}
	var tables []string
	for _, r := range relations {
		tables = append(tables, r.name)
	}
	if err := e.invalidIndexes(ctx, tables); err != nil {
		return err
	}
	if err := e.patient.indexes(ctx, e); err != nil {
		return err
	}
	e.well("every index that relays and emits need is there and valid")
	return nil
}

func (e *exam) invalidIndexes(ctx context.Context, tables []string) error {
	rows, err := e.tx.Query(ctx, invalidSQL, tables)
	if err != nil {
		return err
	}
	var name string
	var unique, building bool
	_, err = pgx.ForEachRow(rows, []any{&name, &unique, &building}, func() error {
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
		found, err := e.hasIndex(ctx, t.table(), key.Columns, true)
		if err != nil {
			return err
		}
		if !found {
			e.add(Problem, fmt.Sprintf("%s is not unique in %s: there is no valid unique index on %s, and emit would write it twice",
				key.For, t.table(), strings.Join(key.Columns, ", ")), key.Index)
		}
	}
	// Indexes are what the planner has left; if it still reads or sorts the table, there is none.
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

// hasIndex reports whether a table has a valid index that begins with these columns; a unique
// one has no others, in whatever order.
func (e *exam) hasIndex(ctx context.Context, table string, columns []string, unique bool) (bool, error) {
	rows, err := e.tx.Query(ctx, `
SELECT ARRAY(SELECT a.attname::text FROM unnest(i.indkey[0:i.indnkeyatts - 1]) WITH ORDINALITY AS k(attnum, n)
  JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.attnum ORDER BY k.n)
FROM pg_index AS i
WHERE i.indrelid = to_regclass($1) AND i.indisvalid AND i.indisready AND (i.indisunique OR NOT $2) AND 0 <> ALL(i.indkey)`, table, unique)
	if err != nil {
		return false, err
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[[]string])
	if err != nil {
		return false, err
	}
	wanted := slices.Sorted(slices.Values(columns))
	return slices.ContainsFunc(list, func(has []string) bool {
		if unique {
			return slices.Equal(slices.Sorted(slices.Values(has)), wanted)
		}
		return len(has) >= len(columns) && slices.Equal(has[:len(columns)], columns)
	}), nil
}

// servedByIndex asks the planner, which knows best what an index is good for.
func (e *exam) servedByIndex(ctx context.Context, sql string) (bool, error) {
	plan, err := query.Explain(ctx, e.tx, sql)
	return err == nil && !plan.Has("Seq Scan", "Bitmap Heap Scan", "Sort", "Incremental Sort"), err
}

// streamIndex is one of the stream's own indexes. They come with its migrations; what is
// missing, somebody dropped.
type streamIndex struct {
	table   string
	columns []string
	// where is its condition, and unique is set for a unique one.
	where  string
	unique bool
}

var streamIndexes = []streamIndex{
	{table: "outbox_stream", columns: []string{"shard", "seq"}},
	{table: "outbox_stream", columns: []string{"xid", "shard", "seq"}},
	{table: "outbox_parked", columns: []string{"subscription", "shard", "key", "seq"}, where: "gates"},
	{table: "outbox_parked", columns: []string{"subscription", "shard", "next_attempt_at"}, where: "state = 'retry'"},
	{table: "outbox_deliveries", columns: []string{"subscription", "shard", "to_seq"}},
	{table: "outbox_deliveries", columns: []string{"settled_at"}},
	{table: "outbox_dedupe", columns: []string{"created_at"}},
	{table: "outbox_dedupe", columns: []string{"namespace", "topic", "dedupe_key"}, where: "dedupe_key IS NOT NULL", unique: true},
}

// make is the statement that makes the index on a table, named as SQL.
func (i *streamIndex) make(table string) string {
	create := "CREATE INDEX CONCURRENTLY"
	switch {
	case i.unique:
		create = "CREATE UNIQUE INDEX CONCURRENTLY"
	case i.table == "outbox_stream":
		create = "CREATE INDEX" // PostgreSQL knows no other way for a table with partitions
	}
	sql := fmt.Sprintf("%s ON %s (%s)", create, table, strings.Join(i.columns, ", "))
	if i.where != "" {
		sql += " WHERE " + i.where
	}
	return sql + ";"
}

func (t streamPatient) indexes(ctx context.Context, e *exam) error {
	for i := range streamIndexes {
		index := &streamIndexes[i]
		found, err := e.hasIndex(ctx, t.at(index.table), index.columns, index.unique)
		if err != nil {
			return err
		}
		if found {
			continue
		}
		severity, means := Warning, "relays read more with every event that is kept"
		if index.unique {
			severity, means = Problem, "a dedupe key could be emitted twice"
		}
		e.add(severity, fmt.Sprintf("%s has no valid index on %s: %s", t.at(index.table), strings.Join(index.columns, ", "), means),
			index.make(t.at(index.table)))
	}
	return nil
}
