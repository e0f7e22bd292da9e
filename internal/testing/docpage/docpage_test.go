package docpage

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// heard notes what a test would have failed of.
type heard struct {
	testing.TB
	errors int
}

func (h *heard) Errorf(string, ...any) { h.errors++ }

func TestHolds(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const one, two = "if done {\n\treturn\n}\n", "done = true\n"
	page := write("page.md", fmt.Sprintf("# A page\n\n```go\n%s```\n\ntext\n\n```go\n%s```\n\n```sql\nSELECT 1\n```\n", one, two))
	if got := Blocks(t, page, "go"); !slices.Equal(got, []string{one, two}) {
		t.Errorf("the blocks are %q", got)
	}
	compiled := write("code.go", "\tif done {\n\t\treturn\n\t}\n")
	for want, files := range map[int][]string{0: {compiled, write("more.go", two)}, 1: {compiled}} {
		h := &heard{TB: t}
		if Holds(h, page, "go", files...); h.errors != want {
			t.Errorf("%d blocks are missing in %v, want %d", h.errors, files, want)
		}
	}
}
