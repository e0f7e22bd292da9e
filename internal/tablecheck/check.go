// Package tablecheck compares the tables of a database with a layout: whether the statements that are compiled from the
// layout can run on them.
package tablecheck

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/internal/sqlstate"
	"github.com/packfinderz/outbox/internal/tablesql"
	"github.com/packfinderz/outbox/layouts"
)

// ErrMismatch is pgstore.ErrMismatch, and ErrNoTable is pgstore.ErrNoTable.
var (
	ErrMismatch = errors.New("the table does not match the layout")
	ErrNoTable  = errors.New("there is no table")
)

// Mismatch is a pgstore.Mismatch.
type Mismatch struct {
	Table, Column, Problem string
	OnlyEmit               bool
	Lacks                  []string
}

// Querier is a pool, a connection or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Mismatches lists everything that does not fit. A table that is missing is an ErrNoTable.
func Mismatches(ctx context.Context, db Querier, l layouts.Layout) ([]Mismatch, error) {
	return compare(ctx, db, l, false)
}

// Existing lists what does not fit of the tables that are there already, for a program that looks before it makes the
// rest. It assumes that missing tables and enum types will be made as the layout says.
func Existing(ctx context.Context, db Querier, l layouts.Layout) ([]Mismatch, error) {
	return compare(ctx, db, l, true)
}

func compare(ctx context.Context, db Querier, l layouts.Layout, makesMissing bool) ([]Mismatch, error) {
	events, err := inspect(ctx, db, l, l.Table, l.Columns.All(), makesMissing)
	switch {
	case makesMissing && errors.Is(err, ErrNoTable):
		events = expected(l)
	case err != nil:
		return nil, err
	default:
		events.event()
	}
	if l.DeadLetter == nil {
		return events.mismatches, nil
	}
	letters, err := inspect(ctx, db, l, l.DeadLetter.Table, l.DeadLetter.Columns.All(), makesMissing)
	switch {
	case makesMissing && errors.Is(err, ErrNoTable):
		return events.mismatches, nil
	case err != nil:
		return nil, err
	}
	letters.letter(events)
	return append(events.mismatches, letters.mismatches...), nil
}

// describeSQL describes the columns of table $1. Of a domain it gives the type below. $2 are columns
// and $3 the enum types that the layout says they have.
const describeSQL = `
WITH RECURSIVE described AS (
  SELECT a.attnum, a.attname::text AS name, a.atttypid AS type, a.atttypmod AS typmod,
    format_type(a.atttypid, a.atttypmod) AS shown, a.attnotnull AS not_null,
    a.atthasdef AND a.attgenerated = '' OR a.attidentity <> '' AS has_default,
    a.attgenerated <> '' OR a.attidentity = 'a' AS generated
  FROM pg_attribute AS a WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped
  UNION ALL
  SELECT d.attnum, d.name, t.typbasetype, t.typtypmod, d.shown, d.not_null OR t.typnotnull,
    d.has_default OR t.typdefault IS NOT NULL, d.generated
  FROM described AS d JOIN pg_type AS t ON t.oid = d.type AND t.typtype = 'd'
)
SELECT d.name, d.shown, t.typname::text, t.typcategory::text, t.oid,
  CASE WHEN t.typname IN ('varchar', 'bpchar') AND d.typmod > 4 THEN d.typmod - 4 ELSE 0 END,
  d.not_null, d.has_default, d.generated,
  ARRAY(SELECT e.enumlabel::text FROM pg_enum AS e WHERE e.enumtypid = t.oid ORDER BY e.enumsortorder),
  coalesce(t.oid = to_regtype(n.enum), false), to_regtype(n.enum) IS NOT NULL,
  c.relkind::text, EXISTS (SELECT FROM pg_inherits AS i WHERE i.inhparent = c.oid), c.relpersistence = 'u', row_security_active(c.oid)
FROM described AS d JOIN pg_type AS t ON t.oid = d.type AND t.typtype <> 'd'
JOIN pg_class AS c ON c.oid = to_regclass($1)
LEFT JOIN unnest($2::text[], $3::text[]) AS n(name, enum) ON n.name = d.name
ORDER BY d.attnum`

// described is a column as the database has it.
type described struct {
	name, shown string
	// base is the type's own name and category its kind, below any domain.
	base, category string
	oid            uint32
	// length is the most characters it takes; zero for any number.
	length int
	// notNull, hasDefault and generated say what an INSERT may leave out, and must.
	notNull, hasDefault, generated bool
	// labels are the values of an enum. isEnum is set if it is the one that the layout names,
	// and enumThere if there is such a one at all.
	labels            []string
	isEnum, enumThere bool
}

// inspection compares one table with its part of a layout.
type inspection struct {
	layout *tablesql.Layout
	table  string
	// columns are what the layout says, found what the table has, in its order.
	columns    []layouts.NamedColumn
	found      []described
	mismatches []Mismatch
	// kind is the table's in pg_class, and children is set if others inherit from it.
	kind     string
	children bool
	// unlogged is set if a crash of the server empties it, and hidden if policies decide which rows this role sees.
	unlogged, hidden bool
}

// inspect reads the description of a table and looks for its columns. With makesEnums, all enum types count as there.
func inspect(
	ctx context.Context, db Querier, of layouts.Layout, table string, columns []layouts.NamedColumn, makesEnums bool,
) (*inspection, error) {
	l := &tablesql.Layout{Layout: of}
	in := &inspection{layout: l, table: l.Qualified(table)}
	names, enums := []string{}, []string{}
	for _, c := range columns {
		if c.IsZero() {
			continue
		}
		in.columns = append(in.columns, c)
		if c.Enum != "" {
			names, enums = append(names, c.Name), append(enums, l.Qualified(c.Enum))
		}
	}
	rows, _ := db.Query(ctx, describeSQL, in.table, names, enums)
	var d described
	_, err := pgx.ForEachRow(rows, []any{
		&d.name, &d.shown, &d.base, &d.category, &d.oid, &d.length, &d.notNull, &d.hasDefault, &d.generated,
		&d.labels, &d.isEnum, &d.enumThere, &in.kind, &in.children, &in.unlogged, &in.hidden,
	}, func() error {
		d.enumThere = d.enumThere || makesEnums
		in.found = append(in.found, d)
		d.labels = nil // the next row has its own
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("outbox: read the description of table %s: %w", in.table, err)
	}
	if len(in.found) == 0 {
		return nil, fmt.Errorf("outbox: %w: %w %s; %s", ErrMismatch, ErrNoTable, in.table, sqlstate.HowToMake(l.Name))
	}
	return in, nil
}

// column is a column of the table; nil if it has none of the name.
func (in *inspection) column(name string) *described {
	for i := range in.found {
		if in.found[i].name == name {
			return &in.found[i]
		}
	}
	return nil
}

// report notes what is wrong with a column, and report that only emit meets it.
func (in *inspection) report(column string, onlyEmit bool, format string, args ...any) {
	in.mismatches = append(in.mismatches, Mismatch{
		Table: in.table, Column: column, OnlyEmit: onlyEmit,
		Problem: fmt.Sprintf("table %s ", in.table) + fmt.Sprintf(format, args...),
	})
}
