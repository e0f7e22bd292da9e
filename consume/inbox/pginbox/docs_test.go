package pginbox_test

import (
	"testing"

	"github.com/packfinderz/outbox/internal/testing/docpage"
)

// TestDocumentation keeps the code of docs/consuming.md what is compiled and run here.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	docpage.Holds(t, "../../../docs/consuming.md", "go", "example_test.go", "../example_test.go")
	docpage.Holds(t, "../../../docs/consuming.md", "sql", "migrations/00001_outbox_inbox.sql")
}
