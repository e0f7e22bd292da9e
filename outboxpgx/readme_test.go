package outboxpgx_test

import (
	"os"
	"strings"
	"testing"
)

// TestReadmeExample keeps the README's example the one that is compiled and run here.
func TestReadmeExample(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(readme), "```go\n")
	code, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatal("the README has no Go example")
	}
	example, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(example), code) {
		t.Errorf("the README's example is not in example_test.go:\n%s", code)
	}
	if lines := strings.Count(code, "\n"); lines > 20 {
		t.Errorf("the README's example has %d lines", lines)
	}
}
