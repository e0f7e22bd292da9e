package checklist

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// rootPackage is the name of the package at the top, whose folder has none.
const rootPackage = "outbox"

// tests are what the test files of one folder declare.
type tests struct {
	functions map[string]bool // tests, fuzz tests and examples
	strings   map[string]bool // string literals, among them the names of subtests
}

func readTests(repository fs.FS, folder string) (*tests, error) {
	where := folder
	if folder == rootPackage {
		where = "."
	}
	files, err := fs.Glob(repository, path.Join(where, "*_test.go"))
	if err != nil {
		return nil, fmt.Errorf("list the tests of %s: %w", folder, err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no tests", folder)
	}
	found := &tests{functions: make(map[string]bool), strings: make(map[string]bool)}
	for _, file := range files {
		source, err := fs.ReadFile(repository, file)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, source, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		ast.Inspect(parsed, found.note)
	}
	return found, nil
}

// note remembers a node if it is a test or a string.
func (t *tests) note(node ast.Node) bool {
	switch node := node.(type) {
	case *ast.FuncDecl:
		if node.Recv == nil && isTest(node.Name.Name) {
			t.functions[node.Name.Name] = true
		}
	case *ast.BasicLit:
		if text, err := strconv.Unquote(node.Value); err == nil && node.Kind == token.STRING {
			t.strings[text] = true
		}
	}
	return true
}

func isTest(function string) bool {
	for _, prefix := range []string{"Test", "Fuzz", "Example"} {
		if strings.HasPrefix(function, prefix) && function != "TestMain" {
			return true
		}
	}
	return false
}
