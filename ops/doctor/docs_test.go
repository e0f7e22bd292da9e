package doctor_test

import (
	"os"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/ops/doctor"
)

// TestDocs keeps the page complete, and in the order of the checks.
func TestDocs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	var sections []string
	for line := range strings.Lines(string(page)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "### "); ok {
			sections = append(sections, strings.Trim(name, "`"))
		}
	}
	var names []string
	for _, check := range doctor.Checks() {
		names = append(names, check.Name)
		if check.About == "" {
			t.Errorf("check %s says nothing about itself", check.Name)
		}
	}
	if got, want := strings.Join(sections, " "), strings.Join(names, " "); got != want {
		t.Errorf("sections %s\nchecks   %s", got, want)
	}
}
