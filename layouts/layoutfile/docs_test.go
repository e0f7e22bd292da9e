package layoutfile_test

import (
	"testing"

	"github.com/packfinderz/outbox/internal/testing/docpage"
)

// TestLayoutsPage keeps the layout on the page what is parsed here.
func TestLayoutsPage(t *testing.T) {
	t.Parallel()
	docpage.Holds(t, "../../docs/layouts.md", "yaml", "example_test.go")
}
