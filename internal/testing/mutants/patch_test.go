package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// root is the repository's, from here.
const root = "../../.."

// enough is how many faults the tests are held against at the least.
const enough = 80

// TestPatches keeps the patches from going stale unnoticed; make mutants runs them.
func TestPatches(t *testing.T) {
	t.Parallel()
	patches, err := readPatches(".", "*")
	if err != nil {
		t.Fatal(err)
	}
	if len(patches) < enough {
		t.Errorf("there are %d patches, want %d at least", len(patches), enough)
	}
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range patches {
		if err := (tree{root: top}).apply(t.Context(), p, "--check"); err != nil {
			t.Error(err)
		}
		if !hasFunction(t, filepath.Join(top, p.pkg), p.top()) {
			t.Errorf("%s: %s has no test %s", p.name, p.pkg, p.top())
		}
	}
}

// hasFunction reports whether a package's tests have a function.
func hasFunction(t *testing.T, pkg, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	declares := regexp.MustCompile(`(?m)^func ` + regexp.QuoteMeta(name) + `\(`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if declares.Match(text) {
			return true
		}
	}
	return false
}

func TestReadPatch(t *testing.T) {
	t.Parallel()
	const diff = "\ndiff --git a/x b/x\n"
	for name, test := range map[string]struct {
		text string
		bad  bool
	}{
		"whole":        {text: "Fault: it fails: badly\nPackage: ./pkg\nTest: TestIt/a_b\n" + diff},
		"no diff":      {text: "Fault: f\nPackage: ./pkg\nTest: TestIt\n", bad: true},
		"no test":      {text: "Fault: f\nPackage: ./pkg\n" + diff, bad: true},
		"empty header": {text: "Fault:\nPackage: ./pkg\nTest: TestIt\n" + diff, bad: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "area-what.patch")
			if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			p, err := readPatch(file)
			if (err != nil) != test.bad {
				t.Fatalf("error %v, want one: %t", err, test.bad)
			}
			want := patch{name: "area-what", path: file, fault: "it fails: badly", pkg: "./pkg", test: "TestIt/a_b"}
			if err == nil && p != want {
				t.Errorf("read %+v, want %+v", p, want)
			}
		})
	}
}

func TestSelector(t *testing.T) {
	t.Parallel()
	if got, want := (patch{test: "TestIt/a+b"}).selector(), `^TestIt$/^a\+b$`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	failed := errors.New("exit status 1")
	p := patch{test: "TestIt/sub"}
	for name, test := range map[string]struct {
		output string
		err    error
		killed bool
	}{
		"it fails":             {"=== RUN\n    --- FAIL: TestIt/sub (0.01s)\nFAIL\n", failed, true},
		"it panics":            {"=== RUN\n\npanic: boom\n", failed, true},
		"it passes":            {"    --- PASS: TestIt/sub (0.01s)\nok\n", nil, false},
		"another fails":        {"    --- FAIL: TestIt/subject (0.01s)\nFAIL\n", failed, false},
		"it does not compile":  {"FAIL pkg [build failed]\n", failed, false},
		"it hangs":             {"\npanic: test timed out after 2m0s\n    --- FAIL: TestIt/sub (120s)\n", failed, false},
		"no test ran":          {"testing: warning: no tests to run\nok\n", nil, false},
		"a log tells of panic": {"level=ERROR msg=\"publisher panic: x\"\nFAIL\n", failed, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if killed, why := judge(p, test.output, test.err); killed != test.killed {
				t.Errorf("killed %t, want %t (%s)", killed, test.killed, why)
			}
		})
	}
}
