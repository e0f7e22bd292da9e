package tablecheck

import (
	"slices"
	"strings"

	"github.com/packfinderz/outbox/internal/tablesql"
	"github.com/packfinderz/outbox/layouts"
)

// expected is the outbox table as the layout describes it, with types by name.
func expected(of layouts.Layout) *inspection {
	l := &tablesql.Layout{Layout: of}
	in := &inspection{layout: l, table: l.Events()}
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
