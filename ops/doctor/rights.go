package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/ops"
)

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// ErrRights means that the role lacks rights, or does not see the tables.
var ErrRights = errors.New("the role lacks rights")

// Rights checks that the connected role has all rights that a use of an outbox needs. If rights are missing, the error
// matches ErrRights and has the GRANT that adds them. It reads the catalogue only, so it is cheap enough for readiness
// probes.
func Rights(ctx context.Context, o *ops.Outbox, use Use) error {
	db := o.Pool()
	relations, err := withSlots(ctx, db, patientOf(o))
	if err != nil {
		return fmt.Errorf("outbox: look for the tables: %w", err)
	}
	needed := func(r relation) []string { return r.relay }
	switch use {
	case UseEmit:
		needed = func(r relation) []string { return r.emit }
	case UsePurge:
		needed = func(r relation) []string { return slices.Concat(r.relay, r.purge) }
	case UseRelay:
	}
	var tables []string
	for _, r := range relations {
		if len(needed(r)) > 0 {
			tables = append(tables, r.name)
		}
	}
	var role string
	var unseen, hidden []string
	err = db.QueryRow(ctx, `SELECT quote_ident(current_user), ARRAY(SELECT name FROM unnest($1::text[]) AS name WHERE to_regclass(name) IS NULL),
		ARRAY(SELECT name FROM unnest($1::text[]) AS name WHERE row_security_active(to_regclass(name)::oid))`,
		tables).Scan(&role, &unseen, &hidden)
	if err != nil {
		return fmt.Errorf("outbox: look for the tables: %w", err)
	}
	if len(unseen) > 0 {
		return fmt.Errorf("outbox: %w: role %s sees no table %s: migrate, or GRANT USAGE ON SCHEMA", ErrRights, role, strings.Join(unseen, ", "))
	}
	if len(hidden) > 0 && use == UseRelay {
		return fmt.Errorf("outbox: %w: row-level security hides rows of %s from role %s: run ALTER TABLE … DISABLE ROW LEVEL SECURITY, or give the role BYPASSRLS",
			ErrRights, strings.Join(hidden, ", "), role)
	}
	lacks, err := lacking(ctx, db, relations, needed)
	if err != nil {
		return fmt.Errorf("outbox: ask for the rights: %w", err)
	}
	if len(lacks) > 0 {
		return fmt.Errorf("outbox: %w: %s: %s", ErrRights, mayNot(role, string(use), lacks), grants(lacks, role))
	}
	return nil
}

// lackingSQL finds the rights that the connected role lacks: number $1 is the privilege $3 on the table $2, or on
// its column $4, or, by $5, on a sequence. It leaves out tables and columns that do not exist.
const lackingSQL = `
SELECT DISTINCT u.n FROM unnest($1::int[], $2::text[], $3::text[], $4::text[], $5::boolean[]) AS u(n, name, privilege, col, sequence)
WHERE NOT CASE WHEN u.sequence THEN has_sequence_privilege(to_regclass(u.name)::oid, u.privilege)
  WHEN u.col <> '' THEN has_column_privilege(to_regclass(u.name)::oid,
    (SELECT attnum FROM pg_attribute WHERE attrelid = to_regclass(u.name) AND attname = u.col AND NOT attisdropped), u.privilege)
  ELSE has_table_privilege(to_regclass(u.name)::oid, u.privilege) END
ORDER BY 1`

func lacking(ctx context.Context, db querier, relations []relation, needed func(relation) []string) ([]right, error) {
	var all []right
	var numbers []int
	var tables, privileges, columns []string
	var sequences []bool
	for _, r := range relations {
		for _, privilege := range needed(r) {
			for _, column := range r.columnsOf(privilege) {
				numbers, tables, columns = append(numbers, len(all)), append(tables, r.name), append(columns, column)
				word, _, _ := strings.Cut(privilege, " (")
				privileges, sequences = append(privileges, word), append(sequences, r.sequence)
			}
			all = append(all, right{r.name, privilege, r.sequence})
		}
	}
	rows, _ := db.Query(ctx, lackingSQL, numbers, tables, privileges, columns, sequences) // the rows say what failed
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r right, err error) {
		var n int
		if err = row.Scan(&n); err == nil {
			r = all[n]
		}
		return r, err
	})
}

// columnsOf returns the columns on which a privilege is enough: that of SELECT (id), or those that are written; an
// empty name is the table.
func (r relation) columnsOf(privilege string) []string {
	word, column, one := strings.Cut(privilege, " (")
	switch columns := r.written[word]; {
	case one:
		return []string{strings.TrimSuffix(column, ")")}
	case len(columns) > 0:
		return columns
	}
	return []string{""}
}

// withSlots returns the patient's relations, with each slot by itself.
func withSlots(ctx context.Context, db querier, p patient) ([]relation, error) {
	var list []relation
	for _, r := range p.relations() {
		if !r.slots {
			list = append(list, r)
			continue
		}
		slots, err := partitions(ctx, db, r.name)
		if err != nil {
			return nil, err
		}
		for _, slot := range slots {
			list = append(list, relation{name: slot, relay: r.relay, purge: r.purge, emit: r.emit, operate: r.operate})
		}
	}
	return list, nil
}

// tables returns the SQL names of the patient's tables, with each slot by itself.
func (e *exam) tables(ctx context.Context) (names []string, err error) {
	relations, err := withSlots(ctx, e.tx, e.patient)
	for _, r := range relations {
		names = append(names, r.name)
	}
	return names, err
}

func partitions(ctx context.Context, db querier, table string) ([]string, error) {
	rows, _ := db.Query(ctx, `
SELECT format('%I.%I', n.nspname, c.relname) FROM pg_inherits
JOIN pg_class AS c ON c.oid = inhrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE inhparent = to_regclass($1) ORDER BY length(c.relname), c.relname`, table) // the rows say what failed
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
