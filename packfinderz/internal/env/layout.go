package env

import (
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/layouts/layoutfile"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/registry"
)

const layoutVariable = "PACKFINDERZ_OUTBOX_LAYOUT_FILE"

// Layout returns the contract's table, or that of a layout file: it may have other names, and lack optional columns.
func (r *Reader) Layout() layouts.Layout {
	file := r.Text("", layoutVariable)
	if file == "" {
		return registry.Layout()
	}
	layout, err := layoutfile.Load(file)
	switch {
	case err != nil:
		r.Refuse(layoutVariable, "cannot be used: %v", err)
	case layout.DeadLetter == nil:
		r.Refuse(layoutVariable, "cannot be used: the layout %s has no dead-letter table, and the publisher writes why it gave an event up", file)
	default:
		return layout
	}
	return registry.Layout() // go on, to report what else is wrong
}

// ContractTables refuses a layout file with other tables than the contract's: api migrate creates only those, and the
// publisher would read tables that do not exist.
func (r *Reader) ContractTables() {
	layout, contract := r.Layout(), registry.Layout()
	if layout.Schema != contract.Schema || layout.Table != contract.Table || layout.DeadLetter.Table != contract.DeadLetter.Table {
		r.Refuse(layoutVariable, "names the tables %s and %s, and api migrate makes none but %s and %s: make yours with migrations of your own, "+
			"or unset the variable to have these", qualified(layout, layout.Table), qualified(layout, layout.DeadLetter.Table),
			contract.Table, contract.DeadLetter.Table)
	}
	if layout.DeadLetter.Columns.RetriedAt.Name == "" {
		r.Refuse(layoutVariable, "names no column retriedAt, and api migrate makes and checks the contract's tables, which have it: add the column "+
			"(ALTER TABLE %s ADD retried_at timestamptz) and its name, or do without api migrate", contract.DeadLetter.Table)
	}
}

func qualified(layout layouts.Layout, table string) string {
	if layout.Schema == "" {
		return table
	}
	return layout.Schema + "." + table
}
