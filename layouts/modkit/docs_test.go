package modkit_test

import (
	"testing"

	"github.com/packfinderz/outbox/internal/testing/docpage"
)

// TestDocumentation checks that the code of docs/modkit.md is compiled and run here.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	docpage.Holds(t, "../../docs/modkit.md", "go", "example_test.go")
}
