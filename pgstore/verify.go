package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/layouts"
)

// ErrMismatch means that the table is not there or not what the layout says. A *MismatchError
// says what differs.
var ErrMismatch = errors.New("the table does not match the layout")

// ErrNoTable means that a table of the layout is not there at all. It comes with ErrMismatch.
var ErrNoTable = errors.New("there is no table")

// MismatchError lists what keeps a table from working. It matches ErrMismatch.
type MismatchError struct {
	// Layout is the layout's name.
	Layout string
	// Mismatches are all of them.
	Mismatches []Mismatch
}

// Mismatch is one thing that does not fit.
type Mismatch struct {
	// Table is the table, as SQL.
	Table string
	// Column is the column's name; empty if it is about the table.
	Column string
	// Problem is one sentence without its end: what was found and what is needed.
	Problem string
	// OnlyEmit is set where relays and people can do their work all the same.
	OnlyEmit bool
	// Lacks are the values that the column's enum has to get, where that is all that is wrong.
	Lacks []string
}

// shownMismatches is how many of them an error names. Doctor lists them all.
const shownMismatches = 3

// Error is one line.
func (e *MismatchError) Error() string {
	var parts []string
	for _, m := range e.Mismatches[:min(shownMismatches, len(e.Mismatches))] {
		parts = append(parts, m.Problem)
	}
	text := fmt.Sprintf("outbox: %v %s: %s", ErrMismatch, e.Layout, strings.Join(parts, "; "))
	if more := len(e.Mismatches) - shownMismatches; more > 0 {
		text += fmt.Sprintf("; and %d more, which outbox doctor lists", more)
	}
	return text
}

// Unwrap makes errors.Is(err, ErrMismatch) hold.
func (e *MismatchError) Unwrap() error { return ErrMismatch }

// Verify reads the table's description and reports, as ErrMismatch, what does not fit the
// layout. It writes nothing.
func (s *Store) Verify(ctx context.Context) error { return s.layout.verify(ctx, s.pool, false) }

// Verify reads the description of the layout's tables and reports, as a *MismatchError, what would
// keep relays and people from their work: columns that are missing, of a type that statements
// cannot use, or too short. It writes nothing, and waits for no lock.
func Verify(ctx context.Context, db Querier, l layouts.Layout) error {
	return (&layout{l}).verify(ctx, db, false)
}

// VerifyEmit is Verify for a program that emits, too: what would refuse new rows is reported as well.
func VerifyEmit(ctx context.Context, db Querier, l layouts.Layout) error {
	return (&layout{l}).verify(ctx, db, true)
}

func (l *layout) verify(ctx context.Context, db Querier, emits bool) error {
	list, err := l.mismatches(ctx, db)
	if err != nil {
		return err
	}
	var serious []Mismatch
	for _, m := range list {
		if emits || !m.OnlyEmit {
			serious = append(serious, m)
		}
	}
	if len(serious) == 0 {
		return nil
	}
	return &MismatchError{Layout: l.Name, Mismatches: serious}
}

// Mismatches lists everything that does not fit the layout; those that only emit meets, too.
func Mismatches(ctx context.Context, db Querier, l layouts.Layout) ([]Mismatch, error) {
	return (&layout{l}).mismatches(ctx, db)
}

func (l *layout) mismatches(ctx context.Context, db Querier) ([]Mismatch, error) {
	events, err := l.inspect(ctx, db, l.Table, l.Columns.All())
	if err != nil {
		return nil, err
	}
	events.event()
	list := events.mismatches
	if l.DeadLetter != nil {
		letters, err := l.inspect(ctx, db, l.DeadLetter.Table, l.DeadLetter.Columns.All())
		if err != nil {
			return nil, err
		}
		letters.letter(events)
		list = append(list, letters.mismatches...)
	}
	return list, nil
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
	layout *layout
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

// inspect reads the description of a table and looks for its columns.
func (l *layout) inspect(ctx context.Context, db Querier, table string, columns []layouts.NamedColumn) (*inspection, error) {
	in := &inspection{layout: l, table: l.qualified(table)}
	var names, enums []string
	for _, c := range columns {
		if c.IsZero() {
			continue
		}
		in.columns = append(in.columns, c)
		if c.Enum != "" {
			names, enums = append(names, c.Name), append(enums, l.qualified(c.Enum))
		}
	}
	rows, err := db.Query(ctx, describeSQL, in.table, orEmpty(names), orEmpty(enums))
	if err != nil {
		return nil, fmt.Errorf("outbox: read the description of table %s: %w", in.table, err)
	}
	var d described
	_, err = pgx.ForEachRow(rows, []any{
		&d.name, &d.shown, &d.base, &d.category, &d.oid, &d.length, &d.notNull, &d.hasDefault, &d.generated,
		&d.labels, &d.isEnum, &d.enumThere, &in.kind, &in.children, &in.unlogged, &in.hidden,
	}, func() error {
		in.found = append(in.found, d)
		d.labels = nil // the next row has its own
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("outbox: read the description of table %s: %w", in.table, err)
	}
	if len(in.found) == 0 {
		return nil, fmt.Errorf("outbox: %w: %w %s; make it with outbox migrate up --layout %s", ErrMismatch, ErrNoTable, in.table, l.Name)
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
