package redisinbox_test

import (
	"testing"

	"github.com/packfinderz/outbox/internal/testing/docpage"
)

// TestDocumentation keeps the code of the page what is compiled and run here.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	docpage.Holds(t, "../../../docs/consuming-redis.md", "go", "example_test.go", "../../../destinations/redis/consumer/example_test.go")
}
