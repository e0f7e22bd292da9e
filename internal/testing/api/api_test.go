// Package api_test keeps the exported names in a file, so that a change of them is seen in review.
package api_test

import (
	"bytes"
	"flag"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	root = "../../.."
	list = "testdata/api.txt"
)

var update = flag.Bool("update", false, "write the list anew")

// TestExported compares what every public package exports with the list. Change the list with
// go test ./internal/testing/api -update, and show its difference to a reviewer: others build on these names.
func TestExported(t *testing.T) {
	t.Parallel()
	var all bytes.Buffer
	for _, folder := range public(t) {
		p := parse(t, folder)
		if lines := p.exported(t); len(lines) > 0 {
			all.WriteString("# " + folder + "\n" + strings.Join(lines, "\n") + "\n\n")
		}
	}
	if *update {
		if err := os.WriteFile(list, all.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	have, listed := strings.Split(all.String(), "\n"), strings.Split(string(want), "\n")
	for _, line := range have {
		if !slices.Contains(listed, line) {
			t.Errorf("not in the list: %s", line)
		}
	}
	for _, line := range listed {
		if !slices.Contains(have, line) {
			t.Errorf("only in the list: %s", line)
		}
	}
	if t.Failed() {
		t.Log("if that is meant, run: go test ./internal/testing/api -update")
	}
}

// TestNothingHidden refuses an exported name whose signature needs a type that its user cannot write down.
func TestNothingHidden(t *testing.T) {
	t.Parallel()
	for _, folder := range public(t) {
		for _, name := range parse(t, folder).hidden() {
			t.Errorf("%s: %s", folder, name)
		}
	}
}

// public are the folders of packages that others may import.
func public(t *testing.T) (folders []string) {
	t.Helper()
	private := map[string]bool{"internal": true, "testdata": true, "cmd": true, "bench": true, "examples": true, "packfinderz": true, "docs": true}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		folder, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name := entry.Name()
		if folder != "." && (strings.HasPrefix(name, ".") || private[name] && folder != "layouts/packfinderz") {
			return fs.SkipDir
		}
		if sources, err := filepath.Glob(filepath.Join(path, "*.go")); err == nil && len(sources) > 0 {
			folders = append(folders, folder)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return folders
}

// pkg is a package without its tests.
type pkg struct {
	fset  *token.FileSet
	files []*ast.File
}

func parse(t *testing.T, folder string) *pkg {
	t.Helper()
	p := &pkg{fset: token.NewFileSet()}
	sources, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(p.fset, source, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		p.files = append(p.files, file)
	}
	return p
}

// exported are the exported declarations, a line each, sorted. Files for other systems may declare a name again.
func (p *pkg) exported(t *testing.T) (lines []string) {
	t.Helper()
	for _, file := range p.files {
		ast.FileExports(file)
		for _, declared := range file.Decls {
			for _, one := range single(declared) {
				var text bytes.Buffer
				if err := printer.Fprint(&text, p.fset, one); err != nil {
					t.Fatal(err)
				}
				lines = append(lines, strings.Join(strings.Fields(text.String()), " "))
			}
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// single splits a group of declarations, and leaves out what says nothing about the name: imports, and bodies; and what
// nobody sees: methods of types that are not exported.
func single(declared ast.Decl) (list []ast.Decl) {
	switch d := declared.(type) {
	case *ast.FuncDecl:
		if d.Recv != nil && !ast.IsExported(receiver(d)) {
			return nil
		}
		d.Body = nil
		return []ast.Decl{d}
	case *ast.GenDecl:
		if d.Tok == token.IMPORT {
			return nil
		}
		for _, spec := range d.Specs {
			if value, ok := spec.(*ast.ValueSpec); ok && d.Tok == token.VAR {
				value.Values = nil
			}
			list = append(list, &ast.GenDecl{Tok: d.Tok, Specs: []ast.Spec{spec}})
		}
	}
	return list
}

// hidden are the types in exported signatures that are not exported themselves, or are of an internal package.
func (p *pkg) hidden() (found []string) {
	unexported := make(map[string]bool)
	for _, file := range p.files {
		for _, declared := range file.Decls {
			if group, ok := declared.(*ast.GenDecl); ok {
				for _, spec := range group.Specs {
					if is, ok := spec.(*ast.TypeSpec); ok && !is.Name.IsExported() {
						unexported[is.Name.Name] = true
					}
				}
			}
		}
	}
	for _, file := range p.files {
		internal := make(map[string]bool)
		for _, imported := range file.Imports {
			path := strings.Trim(imported.Path.Value, `"`)
			if strings.Contains(path, "/internal/") {
				internal[path[strings.LastIndex(path, "/")+1:]] = true
			}
		}
		ast.FileExports(file)
		var look func(name string, node ast.Node)
		look = func(name string, node ast.Node) {
			ast.Inspect(node, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.Field: // not its names
					look(name, n.Type)
					return false
				case *ast.SelectorExpr:
					if of, ok := n.X.(*ast.Ident); ok && internal[of.Name] {
						found = append(found, name+" needs "+of.Name+"."+n.Sel.Name)
					}
					return false
				case *ast.Ident:
					if unexported[n.Name] {
						found = append(found, name+" needs "+n.Name)
					}
				}
				return true
			})
		}
		for _, declared := range file.Decls {
			switch d := declared.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil || !unexported[receiver(d)] {
					look(d.Name.Name, d.Type)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if is, ok := spec.(*ast.TypeSpec); ok {
						look(is.Name.Name, is.Type)
					}
				}
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// receiver is the name of a method's type.
func receiver(method *ast.FuncDecl) string {
	is := method.Recv.List[0].Type
	if pointer, ok := is.(*ast.StarExpr); ok {
		is = pointer.X
	}
	switch generic := is.(type) {
	case *ast.IndexExpr:
		is = generic.X
	case *ast.IndexListExpr:
		is = generic.X
	}
	if name, ok := is.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}
