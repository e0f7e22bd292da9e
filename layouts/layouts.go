// Package layouts lists the shipped layouts, for programs that let their user
// choose one by name.
package layouts

import (
	"io/fs"

	"github.com/packfinderz/outbox/layouts/doorito"
	"github.com/packfinderz/outbox/layouts/modkit"
	"github.com/packfinderz/outbox/layouts/packfinderz"
	"github.com/packfinderz/outbox/pgstore"
)

// Shipped is a layout that comes with its migrations.
type Shipped struct {
	// Layout is the layout with its own table names.
	Layout pgstore.Layout
	// Summary says in one line whose table it is.
	Summary string
	// Migrations are its goose migrations, for the table names of the given layout.
	Migrations func(pgstore.Layout) (fs.FS, error)
}

// All are the shipped layouts, by name.
func All() []Shipped {
	return []Shipped{
		{doorito.Layout(), "Django model: status, due time, maximum of attempts per row", doorito.Migrations},
		{modkit.Layout(), "shared by modules: namespace and topic, leases, tenants", modkit.Migrations},
		{packfinderz.Layout(), "append-only, enum types, row locks, dead-letter table", packfinderz.Migrations},
	}
}

// Find is the shipped layout of a name.
func Find(name string) (Shipped, bool) {
	for _, shipped := range All() {
		if shipped.Layout.Name == name {
			return shipped, true
		}
	}
	return Shipped{}, false
}
