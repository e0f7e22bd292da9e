// Package shipped lists the shipped layouts, for programs whose user chooses one by name.
package shipped

import (
	"io/fs"

	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/layouts/doorito"
	"github.com/packfinderz/outbox/layouts/modkit"
	"github.com/packfinderz/outbox/layouts/packfinderz"
)

// Layout is a shipped layout with its migrations.
type Layout struct {
	// Layout is the layout with its default table names.
	Layout layouts.Layout
	// Summary says in one line whose table it is.
	Summary string
	// Migrations returns its goose migrations, for the table names of the given layout.
	Migrations func(layouts.Layout) (fs.FS, error)
}

// All returns the shipped layouts, sorted by name.
func All() []Layout {
	return []Layout{
		{doorito.Layout(), "Django model: status, due time, maximum of attempts per row", doorito.Migrations},
		{modkit.Layout(), "shared by modules: namespace and topic, leases, tenants", modkit.Migrations},
		{packfinderz.Layout(), "append-only, enum types, row locks, dead-letter table", packfinderz.Migrations},
	}
}

// Find returns the shipped layout of a name.
func Find(name string) (Layout, bool) {
	for _, shipped := range All() {
		if shipped.Layout.Name == name {
			return shipped, true
		}
	}
	return Layout{}, false
}
