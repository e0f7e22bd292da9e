package pgstore

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/internal/tablesql"
	"github.com/packfinderz/outbox/internal/testing/layouttest"
	"github.com/packfinderz/outbox/layouts"
)

// TestClockIsTheDatabases keeps this process's clock out of every row: an hour off, it must
// change nothing. Go's clock may measure how long something took, and nothing else: each
// use of time.Now in the package is listed here with what it is for.
func TestClockIsTheDatabases(t *testing.T) {
	t.Parallel()
	allowed := map[string]int{
		"claim.go": 5, // pacing: how long the last looks for due rows and expired leases took, when far leases were looked for
		"clock.go": 1, // measuring: for how long a lease has been watched
	}
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]int)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			selector, ok := node.(*ast.SelectorExpr)
			if !ok || selector.Sel.Name != "Now" {
				return true
			}
			if pkg, ok := selector.X.(*ast.Ident); ok && pkg.Name == "time" {
				found[name]++
			}
			return true
		})
	}
	for name, n := range found {
		if n > allowed[name] {
			t.Errorf("%s uses time.Now %d times, %d are accounted for: rows take their time from the database", name, n, allowed[name])
		}
	}
	for _, described := range []layouts.Layout{layouttest.Leased(), layouttest.Lettered()} {
		layout := tablesql.Layout{Layout: described}
		sql := compile(&layout, &Config{Lease: DefaultLease, MaxAttempts: 3})
		settles := sql.byCtid
		if layout.Locks() {
			settles = sql.locked
		}
		for name, statement := range map[string]*statement{
			"claimDue": sql.claimDue.all, "claimDue but for some": sql.claimDue.some, "delivered": settles.delivered, "failed": settles.failed, "purge": sql.purge,
		} {
			for _, constant := range statement.constants {
				switch constant.(type) {
				case string, float64, int, []string:
				default:
					t.Errorf("%s has a constant of type %T", name, constant)
				}
			}
		}
	}
}
