package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/ops"
)

// lackingSQL are the rights $2 on the tables $1 that the connected role lacks. A right that names a
// column in $3 is one on that column. A table that is not there is left out.
const lackingSQL = `
SELECT n::int FROM unnest($1::text[], $2::text[], $3::text[], $4::boolean[]) WITH ORDINALITY AS u(name, privilege, col, sequence, n)
WHERE NOT CASE WHEN u.sequence THEN has_sequence_privilege(to_regclass(u.name)::oid, u.privilege)
  WHEN u.col <> '' THEN has_column_privilege(to_regclass(u.name)::oid, u.col, u.privilege)
  ELSE has_table_privilege(to_regclass(u.name)::oid, u.privilege) END
ORDER BY n`

// right is one right on one table. The privilege is as in GRANT: SELECT, or SELECT (id) on a column.
type right struct {
	table, privilege string
	sequence         bool
}

// need is a right without its column, and the column.
func (r right) need() (privilege, column string) {
	privilege, column, _ = strings.Cut(r.privilege, " (")
	return privilege, strings.TrimSuffix(column, ")")
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
	relations = append(relations, auditLog(e.target.schema())...)
	relay, err := e.lacking(ctx, relations, func(r relation) []string { return r.relay })
	if err != nil {
		return err
	}
	emit, err := e.lacking(ctx, relations, func(r relation) []string { return r.emit })
	if err != nil {
		return err
	}
	e.judgeRole(role, relay, emit)
	if e.config.For == UseEmit || e.config.For == "" && len(relay) > 0 {
		return nil // a role that does not relay has no use for the rest
	}
	for _, use := range []struct {
		what   string
		rights func(relation) []string
	}{
		{"purge", func(r relation) []string { return r.purge }},
		{"look at events, nor write down who changes them", func(r relation) []string { return r.operate }},
	} {
		lacking, err := e.lacking(ctx, relations, use.rights)
		if err != nil {
			return err
		}
		if len(lacking) > 0 {
			e.add(Warning, mayNot(role, use.what, lacking), grants(lacking, role))
		}
	}
	return nil
}

// judgeRole says what a role may do, by what it lacks to relay and to emit. Producers and relays have
// roles of their own: one that may do either of the two completely is well, unless it was said to be for
// the other.
func (e *exam) judgeRole(role string, relay, emit []right) {
	switch use := e.config.For; {
	case use == UseEmit && len(emit) > 0:
		e.add(Problem, mayNot(role, "emit", emit), grants(emit, role))
	case use == UseRelay && len(relay) > 0:
		e.add(Problem, mayNot(role, "relay", relay), grants(relay, role))
	case use != "":
		e.add(OK, fmt.Sprintf("role %s may %s", role, use), "")
	case len(relay) == 0 && len(emit) == 0:
		e.add(OK, fmt.Sprintf("role %s may relay and emit", role), "")
	case len(relay) == 0:
		e.add(OK, fmt.Sprintf("role %s may relay, and not emit: a relay's role", role), "")
	case len(emit) == 0:
		e.add(OK, fmt.Sprintf("role %s may emit, and not relay: a producer's role", role), "")
	default:
		// Nobody said which of the two it is, and a producer must not be given the rights of a relay.
		e.add(Problem, mayNot(role, "relay", relay), "If it is a relay's role: "+grants(relay, role))
		e.add(Problem, mayNot(role, "emit", emit), "If it is a producer's role: "+grants(emit, role))
	}
}

func mayNot(role, what string, lacking []right) string {
	return fmt.Sprintf("role %s may not %s: it lacks %s", role, what, strings.Join(inWords(lacking), "; "))
}

// auditLog are the tables of the audit log, which stands beside the target's where somebody made it. A
// relay writes nothing there; a person who changes events, or looks at one, does so with its role.
func auditLog(schema string) []relation {
	return []relation{
		{name: qualified(schema, ops.AuditTable), operate: []string{"SELECT", "INSERT", "UPDATE"}},
		{name: qualified(schema, ops.AuditTable+"_events"), operate: []string{"SELECT", "INSERT"}},
	}
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
			list = append(list, relation{name: slot, relay: r.relay, purge: r.purge, emit: r.emit, operate: r.operate})
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
	var tables, privileges, columns []string
	var sequences []bool
	for _, r := range relations {
		for _, privilege := range needed(r) {
			all = append(all, right{r.name, privilege, r.sequence})
			privilege, column := all[len(all)-1].need()
			tables, privileges, columns = append(tables, r.name), append(privileges, privilege), append(columns, column)
			sequences = append(sequences, r.sequence)
		}
	}
	rows, err := e.tx.Query(ctx, lackingSQL, tables, privileges, columns, sequences)
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
