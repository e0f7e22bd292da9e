package survey

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/internal/tablecheck"
	"github.com/packfinderz/outbox/layouts"
)

// Plan says how to migrate a database that already has some of a layout's tables.
type Plan struct {
	// Kept are the tables that the migrations did not create and that stay as they are.
	Kept []Object
	// Types are statements that create enum types for kept tables that have text columns instead: programs cast
	// what they write to these types. Run them before the migrations. They may be run again.
	Types []string
}

// Versions returns the migrations that would create the kept tables, and that are skipped. They are never recorded
// as applied, so that migrating down does not drop those tables.
func (p *Plan) Versions() []int64 {
	versions := make([]int64, len(p.Kept))
	for i, o := range p.Kept {
		versions[i] = o.Version
	}
	return versions
}

// NewPlan examines a database. An ErrConflict names everything that would stop the migrations, or the programs
// after them; the plan then has only the kept tables.
func (s Set) NewPlan(ctx context.Context, db DB, layout layouts.Layout) (*Plan, error) {
	found, err := s.Look(ctx, db)
	if err != nil {
		return &Plan{}, err
	}
	plan := &Plan{}
	for _, o := range found.Taken {
		if o.Kind == Table {
			plan.Kept = append(plan.Kept, o)
		}
	}
	if err := found.LostError(); err != nil {
		return plan, err
	}
	problems := found.inTheWay(plan)
	if len(plan.Kept) > 0 {
		misfits, err := found.misfits(ctx, db, layout)
		if err != nil {
			return plan, err
		}
		problems = append(problems, misfits...)
	}
	if len(problems) > 0 {
		return plan, fmt.Errorf("%w: %s; then migrate again", ErrConflict, strings.Join(problems, "; "))
	}
	plan.Types, err = found.missingTypes(ctx, db, plan.Versions())
	return plan, err
}

// inTheWay returns the names that are taken by something else. The indexes and functions of a kept table belong to
// its owner, too.
func (f *Findings) inTheWay(plan *Plan) (problems []string) {
	for _, o := range f.Taken {
		if o.Problem != "" && (o.Kind == Type || !slices.Contains(plan.Versions(), o.Version)) {
			problems = append(problems, o.Problem)
		}
	}
	return problems
}

// shownMisfits is how many problems of one table are shown.
const shownMisfits = 3

// misfits says what does not fit in each existing table. Enum values that later migrations add may be missing.
func (f *Findings) misfits(ctx context.Context, db DB, layout layouts.Layout) (problems []string, err error) {
	list, err := tablecheck.Existing(ctx, db, layout)
	if err != nil {
		return nil, err
	}
	var tables []string
	byTable := make(map[string][]string)
	for _, m := range list {
		if len(m.Lacks) > 0 && f.willAdd(m.Lacks) {
			continue
		}
		if !slices.Contains(tables, m.Table) {
			tables = append(tables, m.Table)
		}
		byTable[m.Table] = append(byTable[m.Table], m.Problem)
	}
	for _, table := range tables {
		wrong := byTable[table]
		text := strings.Join(wrong[:min(shownMisfits, len(wrong))], "; ")
		if more := len(wrong) - shownMisfits; more > 0 {
			text += fmt.Sprintf("; and %d more", more)
		}
		problems = append(problems, fmt.Sprintf("%[1]s: rename it (ALTER TABLE %[2]s RENAME TO …), or, if it is meant to be the outbox's, "+
			"make it fit layout %[3]s", text, table, layout.Name))
	}
	return problems, nil
}

// willAdd reports whether later migrations add all these values.
func (f *Findings) willAdd(values []string) bool {
	for _, added := range f.added {
		if !slices.Contains(f.noted, added.Version) {
			values = slices.DeleteFunc(slices.Clone(values), func(value string) bool { return slices.Contains(added.values, value) })
		}
	}
	return len(values) == 0
}

// missingTypes returns statements for the types of the skipped migrations that the search path does not find.
func (f *Findings) missingTypes(ctx context.Context, db DB, versions []int64) (statements []string, err error) {
	for _, o := range f.all {
		if o.Kind != Type || !slices.Contains(versions, o.Version) {
			continue
		}
		rows, _ := db.Query(ctx, `SELECT to_regtype($1) IS NULL`, quoted(o.Name)) // the rows say what failed
		missing, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[bool])
		if err != nil {
			return nil, fmt.Errorf("look for type %s: %w", o.Name, err)
		}
		if missing { // another process may create it at the same time
			statements = append(statements, `DO $$ BEGIN `+o.source+`; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$`)
		}
	}
	return statements, nil
}
