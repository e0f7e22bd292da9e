package packfinderz_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

var variable = regexp.MustCompile(`\bPACKFINDERZ_[A-Z_]+[A-Z]\b`)

// Every variable that a program reads is in the example of the environment and in a page of docs, and none that no program reads.
func TestEnvironmentIsWrittenDown(t *testing.T) {
	t.Parallel()
	var sources strings.Builder
	for _, pattern := range []string{"cmd/*/*.go", "internal/env/*.go", "internal/pubsub/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				sources.WriteString(read(t, file))
			}
		}
	}
	names := func(text string) []string {
		found := variable.FindAllString(text, -1)
		slices.Sort(found)
		return slices.Compact(found)
	}
	want := names(sources.String())
	if got := names(read(t, ".env.example")); !slices.Equal(got, want) {
		t.Errorf(".env.example has\n%q\nand the programs read\n%q", got, want)
	}
	docs := names(read(t, "docs/outbox.md") + read(t, "docs/worker.md"))
	for _, name := range want {
		if !slices.Contains(docs, name) && name != "PACKFINDERZ_API_LISTEN" {
			t.Errorf("%s is in no page", name)
		}
	}
	for _, name := range docs {
		if !slices.Contains(want, name) {
			t.Errorf("the pages name %s, which no program reads", name)
		}
	}
}

// The write-up says what it must.
func TestWriteUp(t *testing.T) {
	t.Parallel()
	page := strings.ToLower(strings.Join(strings.Fields(read(t, "docs/outbox.md")), " "))
	for _, words := range []string{
		"at least once", "duplicates are possible; consumers must be idempotent", "skip locked", "without a lease", "why redis", "retries",
		"dead letters", "killed after pub/sub has answered", "cleanup", "backlog", "oldest", "maximum of attempts", "```mermaid",
	} {
		if !strings.Contains(page, words) {
			t.Errorf("docs/outbox.md does not say %q", words)
		}
	}
}
