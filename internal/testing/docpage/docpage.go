// Package docpage keeps the code on a page of documentation what is compiled and run by tests.
package docpage

import (
	"os"
	"strings"
	"testing"
)

// Blocks are the blocks of a language on a page, which has to have some.
func Blocks(t testing.TB, page, language string) []string {
	t.Helper()
	var blocks []string
	for _, rest := range strings.Split(read(t, page), "```"+language+"\n")[1:] {
		code, _, _ := strings.Cut(rest, "```")
		blocks = append(blocks, code)
	}
	if len(blocks) == 0 {
		t.Fatalf("%s has no %s", page, language)
	}
	return blocks
}

// Holds fails for each block of a language on a page that is in none of the files, indentation
// aside.
func Holds(t testing.TB, page, language string, files ...string) {
	t.Helper()
	var sources strings.Builder
	for _, file := range files {
		sources.WriteString(outdent(read(t, file)))
	}
	for _, code := range Blocks(t, page, language) {
		if !strings.Contains(sources.String(), outdent(code)) {
			t.Errorf("this code of %s is not in %v:\n%s", page, files, code)
		}
	}
}

func outdent(code string) string {
	var lines strings.Builder
	for line := range strings.Lines(code) {
		lines.WriteString(strings.TrimLeft(line, " \t"))
	}
	return lines.String()
}

func read(t testing.TB, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
