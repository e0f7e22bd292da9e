package redis_test

import (
	"os"
	"strings"
	"testing"
)

// TestDocumentation keeps the code of the page what is compiled and run here.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	var sources strings.Builder
	for _, file := range []string{"inbox_example_test.go", "consumer_example_test.go"} {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sources.Write(content)
	}
	page, err := os.ReadFile("../../docs/consuming-redis.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(page), "```go\n")[1:] {
		code, _, _ := strings.Cut(block, "```")
		if !strings.Contains(sources.String(), code) {
			t.Errorf("this is in no example:\n%s", code)
		}
	}
}
