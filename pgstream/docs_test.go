package pgstream_test

import (
	"testing"

	"github.com/packfinderz/outbox/internal/testing/docpage"
)

// TestRelayPage keeps the Go code of docs/relay.md what is compiled and run here.
func TestRelayPage(t *testing.T) {
	t.Parallel()
	docpage.Holds(t, "../docs/relay.md", "go", "example_test.go")
}
