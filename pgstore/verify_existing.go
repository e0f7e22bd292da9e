package pgstore

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/packfinderz/outbox/layouts"
)

// ExistingMismatches lists what does not fit of the tables that are there already, for a program that looks before it makes the
// rest. A table or an enum type that is missing is taken to be what the layout says.
func ExistingMismatches(ctx context.Context, db Querier, described layouts.Layout) ([]Mismatch, error) {
	l := &layout{described}
	events, err := l.inspect(ctx, db, l.Table, l.Columns.All())
	switch {
	case errors.Is(err, ErrNoTable):
		events = l.expected()
	case err != nil:
		return nil, err
	default:
		events.expectEnums()
		events.event()
	}
	if l.DeadLetter == nil {
		return events.mismatches, nil
	}
	letters, err := l.inspect(ctx, db, l.DeadLetter.Table, l.DeadLetter.Columns.All())
	switch {
	case errors.Is(err, ErrNoTable):
		return events.mismatches, nil
	case err != nil:
		return nil, err
	}
	letters.expectEnums()
	letters.letter(events)
	return append(events.mismatches, letters.mismatches...), nil
}

// expectEnums takes the enum types that the layout names to be there.
func (in *inspection) expectEnums() {
	for i := range in.found {
		in.found[i].enumThere = true
	}
}

// expected is the outbox table as the layout says it, with types by name.
func (l *layout) expected() *inspection {
	in := &inspection{layout: l, table: l.qualified(l.Table)}
	for _, c := range l.Columns.All() {
		if c.IsZero() {
			continue
		}
		d := described{name: c.Name, base: c.SQLType(c.Field), length: c.MaxLength}
		if c.Enum != "" {
			d.base = c.Enum
		}
		d.shown = d.base
		switch d.base {
		case "integer":
			d.base = "int4"
		case "text":
			d.category = stringCategory
		}
		in.found = append(in.found, d)
	}
	return in
}

// shownValues is how many missing values of an enum are named.
const shownValues = 5

// lacks reports the values that a column's enum has to have and has not.
func (in *inspection) lacks(c layouts.NamedColumn, is *described, values []string, onlyEmit bool) {
	missing := slices.DeleteFunc(slices.Clone(values), func(value string) bool { return slices.Contains(is.labels, value) })
	if len(missing) == 0 {
		return
	}
	named := strings.Join(missing[:min(shownValues, len(missing))], ", ")
	if len(missing) > shownValues {
		named += ", …"
	}
	in.report(c.Name, onlyEmit, "has column %q for %s as %s: it has no value %s; run outbox migrate up, or ALTER TYPE … ADD VALUE",
		c.Name, c.Field, is.shown, named)
	in.mismatches[len(in.mismatches)-1].Lacks = missing
}
