package model_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"gorm.io/gorm/schema"

	"github.com/packfinderz/outbox/packfinderz/internal/pftest"
	"github.com/packfinderz/outbox/packfinderz/pkg/db/model"
)

// The models say of every column what the migrated table says: name, order, type, NULL, default, and the
// indexes of the contract.
func TestModelsMatchTheTables(t *testing.T) {
	t.Parallel()
	pool := pftest.Pool(t)
	for _, value := range []schema.Tabler{model.OutboxEvent{}, model.OutboxDLQ{}} {
		parsed, err := schema.Parse(value, &sync.Map{}, schema.NamingStrategy{})
		if err != nil {
			t.Fatal(err)
		}
		var columns, indexes []string
		for _, field := range parsed.Fields {
			columns = append(columns, describe(field))
		}
		for _, index := range parsed.ParseIndexes() {
			var on []string
			for _, option := range index.Fields {
				on = append(on, option.DBName)
			}
			indexes = append(indexes, fmt.Sprintf("%s (%s)", index.Name, strings.Join(on, ", ")))
		}
		slices.Sort(indexes)
		if want := liveColumns(t, pool, value.TableName()); !slices.Equal(columns, want) {
			t.Errorf("%T has the columns\n  %s\nthe table\n  %s", value, strings.Join(columns, "\n  "), strings.Join(want, "\n  "))
		}
		if want := liveIndexes(t, pool, value.TableName()); !slices.Equal(indexes, want) {
			t.Errorf("%T has the indexes %q, the table %q", value, indexes, want)
		}
	}
}

// describe is a field as liveColumns writes it.
func describe(field *schema.Field) string {
	text := field.DBName + " " + string(field.DataType)
	if field.NotNull || field.PrimaryKey {
		text += " not null"
	}
	return strings.TrimSpace(text + " " + field.DefaultValue)
}

func liveColumns(t *testing.T, pool *pgxpool.Pool, table string) []string {
	t.Helper()
	return list(t, pool, `
		SELECT trim(concat_ws(' ', a.attname,
			replace(format_type(a.atttypid, a.atttypmod), 'timestamp with time zone', 'timestamptz'),
			CASE WHEN a.attnotnull THEN 'not null' END, pg_get_expr(d.adbin, d.adrelid)))
		FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
		WHERE a.attrelid = $1::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`, table)
}

// liveIndexes leaves out the primary key, and the index that the contract does not name.
func liveIndexes(t *testing.T, pool *pgxpool.Pool, table string) []string {
	t.Helper()
	return list(t, pool, `
		SELECT format('%s (%s)', c.relname, string_agg(a.attname, ', ' ORDER BY a.attnum))
		FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_attribute a ON a.attrelid = i.indexrelid
		WHERE i.indrelid = $1::regclass AND NOT i.indisprimary AND i.indpred IS NULL GROUP BY c.relname ORDER BY c.relname`, table)
}

func list(t *testing.T, pool *pgxpool.Pool, query, table string) []string {
	t.Helper()
	rows, err := pool.Query(t.Context(), query, table)
	if err != nil {
		t.Fatal(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return found
}
