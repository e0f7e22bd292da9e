//go:build unix

package restores

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/packfinderz/outbox/internal/testing/pgserver"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/internal/testing/process"
)

// where is the server that a dump is loaded into.
type where int

const (
	younger where = iota // it has seen fewer transactions than any event of the dump
	older                // it has seen more
	same                 // the dump's own server, another database
	wheres
)

func (w where) String() string { return [...]string{"younger", "older", "same"}[w] }

// when is the moment of the repair.
type when int

const (
	before  when = iota // producers wait for it
	after               // producers have written
	passed              // so many transactions later that the new xids have passed every old one
	moments             // how many there are
)

func (w when) String() string { return [...]string{"before", "after", "passed"}[w] }

// scenario is one case of the matrix.
type scenario struct {
	nested bool // producers use savepoints and prepared transactions, on both servers
	dump   dumpKind
	where  where
	when   when
}

func (c scenario) String() string { return fmt.Sprintf("%v-%v-%v", c.dump, c.where, c.when) }

// spread are cases that have every value of every factor.
func spread() []scenario {
	return []scenario{
		{false, plainDump, younger, passed},
		{false, customDump, older, before},
		{false, insertsDump, same, after},
		{false, dataDump, younger, after},
		{true, plainDump, older, after},
		{true, customDump, younger, passed},
		{true, insertsDump, younger, before},
		{true, dataDump, same, passed},
	}
}

// scenarios are those of the spread, or all there are.
func scenarios(all bool) (list []scenario) {
	if !all {
		return spread()
	}
	for _, nested := range []bool{false, true} {
		for dump := range dumpKinds {
			for where := range wheres {
				for when := range moments {
					list = append(list, scenario{nested, dump, where, when})
				}
			}
		}
	}
	return list
}

// TestRestores loads dumps of a stream into other servers. A relay refuses to go on there until a repair, whenever that
// comes; then everything arrives that had not.
func TestRestores(t *testing.T) {
	t.Parallel()
	program := process.Build(t)
	chosen := scenarios(os.Getenv("OUTBOX_CHAOS") == "long")
	var mu sync.Mutex
	var lines []string
	t.Cleanup(func() {
		slices.Sort(lines)
		t.Logf("%d cases\n%-32s %7s %7s %7s %6s %9s %7s %9s\n%s", len(lines), "case", "events", "unread", "new", "lost",
			"reported", "again", "inverted", strings.Join(lines, "\n"))
	})
	for _, nested := range []bool{false, true} {
		name := "plain"
		if nested {
			name = "nested"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := newSource(t, program, nested, nil)
			if nested {
				// No copy has its events: it stays open.
				from.writers.clone().begin(t, from.pool, "open")
			}
			old := sync.OnceValue(func() *pgserver.Server {
				server := pgtest.Server(t, nil)
				newStage(t, program, server.URL("postgres")).burn(from.end + 10_000)
				return server
			})
			for _, c := range chosen {
				if c.nested != nested {
					continue
				}
				t.Run(c.String(), func(t *testing.T) {
					t.Parallel()
					line := c.run(t, from, old)
					mu.Lock()
					defer mu.Unlock()
					lines = append(lines, fmt.Sprintf("%-32s %s", name+"/"+c.String(), line))
				})
			}
		})
	}
}
