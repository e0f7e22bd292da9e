package outboxpgx_test

import (
	"strings"
	"testing"

	"github.com/packfinderz/outbox/internal/testing/docpage"
)

// TestReadmeExamples keeps the README's examples short, and those that are compiled and run in tests.
func TestReadmeExamples(t *testing.T) {
	t.Parallel()
	docpage.Holds(t, "../README.md", "go", "example_test.go", "../destinations/natsjs/consumer/example_test.go")
	for _, code := range docpage.Blocks(t, "../README.md", "go") {
		if lines := strings.Count(code, "\n"); lines > 20 {
			t.Errorf("an example of the README has %d lines:\n%s", lines, code)
		}
	}
}
