package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/packfinderz/outbox/internal/sqlname"
	"github.com/packfinderz/outbox/ops/audit"
)

// right is one right on one table. The privilege is as in GRANT: SELECT, or SELECT (id) on a column.
type right struct {
	table, privilege string
	sequence         bool
}

func lookAtPrivileges(ctx context.Context, e *exam) (string, error) {
	var role string
	var denied bool
	err := e.tx.QueryRow(ctx, `
SELECT quote_ident(current_user), EXISTS (SELECT FROM pg_namespace WHERE nspname = $1 AND NOT has_schema_privilege(oid, 'USAGE'))`,
		e.patient.schema()).Scan(&role, &denied)
	if err != nil {
		return "", err
	}
	if denied {
		e.add(Problem, fmt.Sprintf("role %s may not use the schema %s", role, e.patient.schema()),
			fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO %s; then examine again.", sqlname.Quote(e.patient.schema()), role))
		return "", nil
	}
	relations, err := withSlots(ctx, e.tx, e.patient)
	if err != nil {
		return "", err
	}
	missing, err := missingTable(ctx, e.tx, relations)
	if err != nil {
		return "", err
	}
	if missing != "" {
		e.add(Note, "not looked at: there is no table "+missing, "See the check layout.")
		return "", nil
	}
	relations = append(relations, auditLog(e.patient.schema())...)
	relay, err := lacking(ctx, e.tx, relations, func(r relation) []string { return r.relay })
	if err != nil {
		return "", err
	}
	emit, err := lacking(ctx, e.tx, relations, func(r relation) []string { return r.emit })
	if err != nil {
		return "", err
	}
	e.judgeRole(role, relay, emit)
	if e.config.For == UseEmit || e.config.For == "" && len(relay) > 0 {
		return "", nil // a role that does not relay does not need the rest
	}
	for _, use := range []struct {
		what   string
		rights func(relation) []string
	}{
		{"purge", func(r relation) []string { return r.purge }},
		{"look at events, retry them or write the audit log", func(r relation) []string { return r.operate }},
	} {
		lacks, err := lacking(ctx, e.tx, relations, use.rights)
		if err != nil {
			return "", err
		}
		if len(lacks) > 0 {
			e.add(Warning, mayNot(role, use.what, lacks), grants(lacks, role))
		}
	}
	return "", nil
}

// missingTable returns a table that does not exist, if there is one. Nobody has rights to it, and nobody lacks any.
func missingTable(ctx context.Context, db querier, relations []relation) (name string, err error) {
	var all []string
	for _, r := range relations {
		all = append(all, r.name)
	}
	err = db.QueryRow(ctx, `SELECT coalesce(min(name), '') FROM unnest($1::text[]) AS name WHERE to_regclass(name) IS NULL`, all).Scan(&name)
	return name, err
}

// judgeRole says what a role may do, by the rights it lacks to relay and to emit. Producers and relays have their
// own roles: a role that has all rights for one of the two is fine, unless it is meant for the other.
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
		// It is unknown which of the two it is, and a producer must not get the rights of a relay.
		e.add(Problem, mayNot(role, "relay", relay), "If it is a relay's role: "+grants(relay, role))
		e.add(Problem, mayNot(role, "emit", emit), "If it is a producer's role: "+grants(emit, role))
	}
}

func mayNot(role, what string, lacking []right) string {
	return fmt.Sprintf("role %s may not %s: it lacks %s", role, what, strings.Join(inWords(lacking), "; "))
}

// auditLog returns the tables of the audit log, which may be beside the outbox's. A relay writes nothing there; a
// person who changes events, or looks at one, does so with its role.
func auditLog(schema string) []relation {
	return []relation{
		{name: sqlname.Qualified(schema, audit.Table), operate: []string{"SELECT", "INSERT", "UPDATE"}},
		{name: sqlname.Qualified(schema, audit.EventsTable), operate: []string{"SELECT", "INSERT"}},
	}
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

// inWords returns rights as "SELECT, UPDATE on a, b". Slots are many: the statement has them all.
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
