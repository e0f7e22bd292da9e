package pginbox_test

import (
	"os"
	"strings"
	"testing"
)

// TestDocumentation keeps the code of docs/consuming.md what is compiled and run here.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	page := read(t, "../../docs/consuming.md")
	for language, files := range map[string][]string{
		"go":  {"example_test.go", "../example_test.go"},
		"sql": {"migrations/00001_outbox_inbox.sql"},
	} {
		var sources strings.Builder
		for _, file := range files {
			sources.WriteString(read(t, file))
		}
		blocks := strings.Split(page, "```"+language+"\n")[1:]
		if len(blocks) == 0 {
			t.Errorf("the page has no %s", language)
		}
		for _, block := range blocks {
			code, _, _ := strings.Cut(block, "```")
			if !strings.Contains(sources.String(), code) {
				t.Errorf("this is not in %v:\n%s", files, code)
			}
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
