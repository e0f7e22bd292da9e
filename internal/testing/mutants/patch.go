package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// patch is one fault, and the test that must notice it.
type patch struct {
	// name is the file's, without its ending.
	name string
	// path is the file's, absolute.
	path string
	// fault says what the code does wrong with the patch.
	fault string
	// pkg and test are where the test is, from the root of the repository, and its full name.
	pkg, test string
}

// readPatches reads the patches of a folder whose names match a pattern, in the order of
// their names.
func readPatches(folder, pattern string) ([]patch, error) {
	files, err := filepath.Glob(filepath.Join(folder, pattern+".patch"))
	if err != nil {
		return nil, fmt.Errorf("look for patches: %w", err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no patch in %s matches %q", folder, pattern)
	}
	patches := make([]patch, 0, len(files))
	var problems []error
	for _, file := range files {
		p, err := readPatch(file)
		problems = append(problems, err)
		patches = append(patches, p)
	}
	slices.SortFunc(patches, func(a, b patch) int { return cmp.Compare(a.name, b.name) })
	return patches, errors.Join(problems...)
}

func readPatch(file string) (patch, error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return patch{}, fmt.Errorf("find %s: %w", file, err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return patch{}, fmt.Errorf("read a patch: %w", err)
	}
	p := patch{name: strings.TrimSuffix(filepath.Base(path), ".patch"), path: path}
	head, _, found := strings.Cut(string(text), "\ndiff --git ")
	if !found {
		return p, fmt.Errorf("%s has no diff", p.name)
	}
	fields := map[string]*string{"Fault": &p.fault, "Package": &p.pkg, "Test": &p.test}
	for line := range strings.Lines(head) {
		name, value, _ := strings.Cut(line, ":")
		if field, ok := fields[name]; ok {
			*field = strings.TrimSpace(value)
		}
	}
	for name, value := range fields {
		if *value == "" {
			return p, fmt.Errorf("%s has no line %q above its diff", p.name, name+":")
		}
	}
	return p, nil
}

// area is what the patch belongs to: the first word of its name.
func (p patch) area() string {
	area, _, _ := strings.Cut(p.name, "-")
	return area
}

// top is the name of the test function.
func (p patch) top() string {
	top, _, _ := strings.Cut(p.test, "/")
	return top
}

// selector is the argument of go test -run that runs the test and no other.
func (p patch) selector() string {
	parts := strings.Split(p.test, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}
