package shipped_test

import (
	"strings"
	"testing"

	"github.com/packfinderz/outbox/internal/sqlstate"
	"github.com/packfinderz/outbox/layouts/shipped"
	"github.com/packfinderz/outbox/pgstream"
)

// TestHowToMake recommends the program's migrations for the layouts that have some, and for no other.
func TestHowToMake(t *testing.T) {
	t.Parallel()
	names := []string{pgstream.LayoutName}
	for _, layout := range shipped.All() {
		names = append(names, layout.Layout.Name)
	}
	for _, name := range names {
		if sqlstate.HowToMake(name) != "make the table with outbox migrate up --layout "+name {
			t.Error(sqlstate.HowToMake(name))
		}
	}
	if said := sqlstate.HowToMake("mine"); strings.Contains(said, "migrate") {
		t.Error(said)
	}
}
