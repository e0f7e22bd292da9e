// Package checklist holds a contract against the tests that prove it. A contract is a list of
// lines, each with the tests that would fail if it did not hold; a test that is renamed or removed
// makes its line fail, so that the list cannot rot.
package checklist

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Line is one thing that a contract asks for.
type Line struct {
	// Asks is what the contract asks for.
	Asks string
	// Instead is set where the contract speaks of tools that are not used here: what stands in
	// their place, which is what the tests hold.
	Instead string
	// Tests are the tests that prove it, as folder.TestName, the folder from the top of the
	// repository: "pgstore.TestModel". The root package is "outbox.TestDelay". A subtest is
	// named by the string that the package gives it: "layouts/shipped.TestContracts/doorito".
	Tests []string
}

// Verify fails a test for each line that no test proves, and for each test that is not there.
func Verify(t testing.TB, lines []Line) {
	t.Helper()
	root, err := top()
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems(os.DirFS(root), lines) {
		t.Error(problem)
	}
}

// top is the folder of the whole repository, whichever module the test is in.
func top() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("checklist: find the repository: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.work")); err == nil {
			return folder, nil
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return "", errors.New("checklist: no folder above the test has a go.work")
		}
		folder = parent
	}
}

// problems are what is wrong with the lines, each in the words of the line that has it.
func problems(repository fs.FS, lines []Line) (found []string) {
	packages := make(map[string]*tests)
	seen := make(map[string]bool)
	for i, line := range lines {
		report := func(format string, args ...any) {
			found = append(found, fmt.Sprintf("line %d (%s): ", i+1, line.Asks)+fmt.Sprintf(format, args...))
		}
		if line.Asks == "" {
			report("it does not say what it asks for")
		} else if seen[line.Asks] {
			report("it is there twice")
		}
		seen[line.Asks] = true
		if len(line.Tests) == 0 {
			report("no test proves it")
		}
		for _, name := range line.Tests {
			if err := lookUp(repository, packages, name); err != nil {
				report("%v", err)
			}
		}
	}
	return found
}

// lookUp finds a test by its name, reading each package once.
func lookUp(repository fs.FS, packages map[string]*tests, name string) error {
	folder, path, _ := strings.Cut(name, ".")
	function, subtests, _ := strings.Cut(path, "/")
	if folder == "" || function == "" {
		return fmt.Errorf("%q is not of the form folder.TestName", name)
	}
	known := packages[folder]
	if known == nil {
		var err error
		if known, err = readTests(repository, folder); err != nil {
			return err
		}
		packages[folder] = known
	}
	if !known.functions[function] {
		return fmt.Errorf("%s has no test %s", folder, function)
	}
	if subtests == "" {
		return nil
	}
	for subtest := range strings.SplitSeq(subtests, "/") {
		if !known.strings[subtest] {
			return fmt.Errorf("the tests of %s name no subtest %q", folder, subtest)
		}
	}
	return nil
}
