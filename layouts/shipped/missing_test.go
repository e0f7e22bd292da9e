package shipped_test

import (
	"strings"
	"testing"

	"github.com/packfinderz/outbox/internal/sqlstate"
	"github.com/packfinderz/outbox/layouts/shipped"
)

// TestHowToMake recommends the program's migrations for the layouts that have some, and for no other.
func TestHowToMake(t *testing.T) {
	t.Parallel()
	for _, layout := range shipped.All() {
		if name := layout.Layout.Name; sqlstate.HowToMake(name) != "make the table with outbox migrate up --layout "+name {
			t.Error(sqlstate.HowToMake(name))
		}
	}
	if said := sqlstate.HowToMake("mine"); strings.Contains(said, "migrate") {
		t.Error(said)
	}
}
