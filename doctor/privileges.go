package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// lackingSQL are the rights $2 on the tables $1 that the connected role lacks. A table that is
// not there is left out.
const lackingSQL = `
SELECT n::int FROM unnest($1::text[], $2::text[], $3::boolean[]) WITH ORDINALITY AS u(name, privilege, sequence, n)
WHERE NOT CASE WHEN u.sequence THEN has_sequence_privilege(to_regclass(u.name)::oid, u.privilege)
  ELSE has_table_privilege(to_regclass(u.name)::oid, u.privilege) END
ORDER BY n`

// right is one right on one table.
type right struct {
	table, privilege string
	sequence         bool
}

func lookAtPrivileges(ctx context.Context, e *exam) error {
	var role string
	var denied bool
	err := e.tx.QueryRow(ctx, `
SELECT quote_ident(current_user), EXISTS (SELECT FROM pg_namespace WHERE nspname = $1 AND NOT has_schema_privilege(oid, 'USAGE'))`,
		e.target.schema()).Scan(&role, &denied)
	if err != nil {
		return err
	}
	if denied {
		e.add(Problem, fmt.Sprintf("role %s may not use the schema %s", role, e.target.schema()),
			fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO %s; then examine again.", qualified("", e.target.schema()), role))
		return nil
	}
	relations, err := e.withSlots(ctx)
	if err != nil {
		return err
	}
	for _, use := range []struct {
		what     string
		severity Severity
		rights   func(relation) []string
	}{
		{"relay", Problem, func(r relation) []string { return r.relay }},
		{"purge", Warning, func(r relation) []string { return r.purge }},
		{"emit", Note, func(r relation) []string { return r.emit }},
	} {
		lacking, err := e.lacking(ctx, relations, use.rights)
		if err != nil {
			return err
		}
		if len(lacking) > 0 {
			e.add(use.severity, fmt.Sprintf("role %s may not %s: it lacks %s", role, use.what, strings.Join(inWords(lacking), "; ")),
				grants(lacking, role))
		}
	}
	e.well("role %s may relay, purge and emit", role)
	return nil
}

// withSlots are the target's relations, with each slot by itself.
func (e *exam) withSlots(ctx context.Context) ([]relation, error) {
	var list []relation
	for _, r := range e.target.relations() {
		if !r.slots {
			list = append(list, r)
			continue
		}
		slots, err := e.partitions(ctx, r.name)
		if err != nil {
			return nil, err
		}
		for _, slot := range slots {
			list = append(list, relation{name: slot, relay: r.relay, purge: r.purge, emit: r.emit})
		}
	}
	return list, nil
}

// partitions are those of a table, as SQL.
func (e *exam) partitions(ctx context.Context, table string) ([]string, error) {
	rows, err := e.tx.Query(ctx, `
SELECT format('%I.%I', n.nspname, c.relname) FROM pg_inherits
JOIN pg_class AS c ON c.oid = inhrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE inhparent = to_regclass($1) ORDER BY length(c.relname), c.relname`, table)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// lacking are the rights of one use that the connected role lacks.
func (e *exam) lacking(ctx context.Context, relations []relation, needed func(relation) []string) ([]right, error) {
	var all []right
	var tables, privileges []string
	var sequences []bool
	for _, r := range relations {
		for _, privilege := range needed(r) {
			all = append(all, right{r.name, privilege, r.sequence})
			tables, privileges, sequences = append(tables, r.name), append(privileges, privilege), append(sequences, r.sequence)
		}
	}
	rows, err := e.tx.Query(ctx, lackingSQL, tables, privileges, sequences)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r right, err error) {
		var n int
		if err = row.Scan(&n); err == nil {
			r = all[n-1]
		}
		return r, err
	})
}

// grouped joins the rights on each table, and the tables of each set of rights.
func grouped(list []right) (sets []string, tables map[string][]right) {
	byTable := make(map[string][]string)
	for _, r := range list {
		byTable[r.table] = append(byTable[r.table], r.privilege)
	}
	tables = make(map[string][]right)
	for _, r := range list {
		set := strings.Join(byTable[r.table], ", ")
		if !slices.Contains(sets, set) {
			sets = append(sets, set)
		}
		if !slices.ContainsFunc(tables[set], func(other right) bool { return other.table == r.table }) {
			tables[set] = append(tables[set], r)
		}
	}
	return sets, tables
}

// inWords are rights as "SELECT, UPDATE on a, b". Slots are many: the statement has them all.
func inWords(list []right) (words []string) {
	const most = 4
	sets, tables := grouped(list)
	for _, set := range sets {
		of := names(tables[set])
		more := ""
		if n := len(of); n > most {
			of, more = of[:most-1], fmt.Sprintf(" and %d more", n-most+1)
		}
		words = append(words, set+" on "+strings.Join(of, ", ")+more)
	}
	return words
}

// grants are the statements that give a role these rights.
func grants(list []right, role string) string {
	var sql []string
	sets, tables := grouped(list)
	for _, set := range sets {
		for _, sequence := range []bool{false, true} {
			of := slices.DeleteFunc(slices.Clone(tables[set]), func(r right) bool { return r.sequence != sequence })
			if len(of) == 0 {
				continue
			}
			kind := "TABLE"
			if sequence {
				kind = "SEQUENCE"
			}
			sql = append(sql, fmt.Sprintf("GRANT %s ON %s %s TO %s;", set, kind, strings.Join(names(of), ", "), role))
		}
	}
	return strings.Join(sql, " ")
}

func names(list []right) (tables []string) {
	for _, r := range list {
		tables = append(tables, r.table)
	}
	return tables
}
