package checklist

import (
	"strings"
	"testing"
	"testing/fstest"
)

// TestProblems has a small repository, and lines with everything that can be wrong with one.
func TestProblems(t *testing.T) {
	t.Parallel()
	repository := fstest.MapFS{
		"policy_test.go": {Data: []byte("package outbox\nfunc TestDelay() {}\n")},
		"pgstore/model_test.go": {Data: []byte(`package pgstore
			func TestMain() {}
			func TestModel() { run("a lease", "lost") }
			func (suite) TestMethod() {}
			func FuzzNames() {}
			func helper() {}`)},
		"pgstore/sql.go": {Data: []byte("package pgstore\nfunc TestNowhere() {}\n")},
		"bad/x_test.go":  {Data: []byte("this is no Go")},
	}
	for name, words := range map[string]string{
		"outbox.TestDelay":               "",
		"pgstore.TestModel":              "",
		"pgstore.TestModel/a lease":      "",
		"pgstore.TestModel/a lease/lost": "",
		"pgstore.FuzzNames":              "",
		"pgstore.TestModel/a row lock":   `name no subtest "a row lock"`,
		"pgstore.TestGone":               "pgstore has no test TestGone",
		"pgstore.TestMethod":             "has no test",
		"pgstore.TestMain":               "has no test",
		"pgstore.TestNowhere":            "has no test",
		"pgstore.helper":                 "has no test",
		"elsewhere.TestModel":            "elsewhere has no tests",
		"bad.TestModel":                  "read bad/x_test.go",
		"TestModel":                      "not of the form",
		"":                               "not of the form",
	} {
		got := problems(repository, []Line{{Asks: "a thing", Tests: []string{name}}})
		if words == "" {
			if len(got) > 0 {
				t.Errorf("%s: %q", name, got)
			}
			continue
		}
		if len(got) != 1 || !strings.Contains(got[0], words) || !strings.HasPrefix(got[0], "line 1 (a thing): ") {
			t.Errorf("%s: %q, want %s", name, got, words)
		}
	}

	proven := Line{Asks: "a thing", Tests: []string{"outbox.TestDelay"}}
	for words, lines := range map[string][]Line{
		"line 2 (a thing): it is there twice":         {proven, proven},
		"line 1 (a thing): no test proves it":         {{Asks: "a thing"}},
		"line 1 (): it does not say what it asks for": {{Tests: proven.Tests}},
	} {
		if got := problems(repository, lines); len(got) != 1 || got[0] != words {
			t.Errorf("%q, want %s", got, words)
		}
	}
}

// TestVerify holds a list about this repository.
func TestVerify(t *testing.T) {
	t.Parallel()
	Verify(t, []Line{{
		Asks:  "a list that cannot rot",
		Tests: []string{"internal/testing/checklist.TestProblems", "outbox.TestDelay", "layouts/shipped.TestContracts/doorito"},
	}})
}
