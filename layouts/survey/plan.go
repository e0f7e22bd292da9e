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

// Plan is how to migrate a database that has some of a layout's tables already.
type Plan struct {
	// Kept are tables that the migrations did not make and that stay as they are.
	Kept []Object
	// Types are statements that make the enum types of the kept tables, where these have text instead: a program casts what it
	// writes to them. Run them before the migrations. They may be run again.
	Types []string
}

// Versions are the migrations that make the kept tables, and are left out. They are never noted as applied, so that nobody drops
// those tables by going back.
func (p *Plan) Versions() []int64 {
	versions := make([]int64, len(p.Kept))
	for i, o := range p.Kept {
		versions[i] = o.Version
	}
	return versions
}

// NewPlan looks at a database. An ErrConflict names everything that would keep the migrations, or the programs after them, from
// working; the plan then has no more than the kept tables.
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

// inTheWay are the names that somebody else has taken. Of a table that is kept, its indexes and functions are its owner's, too.
func (f *Findings) inTheWay(plan *Plan) (problems []string) {
	for _, o := range f.Taken {
		if o.Problem != "" && (o.Kind == Type || !slices.Contains(plan.Versions(), o.Version)) {
			problems = append(problems, o.Problem)
		}
	}
	return problems
}

// shownMisfits is how much is told of one table.
const shownMisfits = 3

// misfits says of each table that is there what does not fit. Values that migrations add to an enum need not be there yet.
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

// willAdd is whether migrations to come add all these values.
func (f *Findings) willAdd(values []string) bool {
	for _, added := range f.added {
		if !slices.Contains(f.noted, added.Version) {
			values = slices.DeleteFunc(slices.Clone(values), func(value string) bool { return slices.Contains(added.values, value) })
		}
	}
	return len(values) == 0
}

// missingTypes makes the types of migrations that are left out, wherever the search path does not find them.
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
		if missing { // somebody beside us may make it, too
			statements = append(statements, `DO $$ BEGIN `+o.source+`; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$`)
		}
	}
	return statements, nil
}
