//go:build unix

package restores

// The kinds of dump, and how each is loaded.

import (
	"testing"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

type dumpKind int

const (
	plainDump   dumpKind = iota // a script of COPY
	customDump                  // loaded by two workers at once
	insertsDump                 // a script of INSERT, each a transaction of its own
	dataDump                    // into tables that outbox migrate up has made
	dumpKinds
)

func (k dumpKind) String() string { return [...]string{"plain", "custom", "inserts", "data"}[k] }

// dumpArgs are the flags of pg_dump.
func (k dumpKind) dumpArgs() []string {
	return [...][]string{
		plainDump: nil, customDump: {"--format", "custom"}, insertsDump: {"--inserts"},
		// Which migrations have run is for the new database to say.
		dataDump: {"--data-only", "--exclude-table", "*_goose"},
	}[k]
}

// load loads a dump into an empty database.
func (k dumpKind) load(t *testing.T, s *stage, path string) {
	t.Helper()
	switch k {
	case customDump:
		pgtest.Program(t, "pg_restore", nil, "--no-owner", "--exit-on-error", "--jobs", "2", "--dbname", s.url, path)
		return
	case dataDump:
		s.run("migrate", "up")
		// What is in the dump, too.
		s.exec(`DELETE FROM outbox_settings`)
		s.exec(`DELETE FROM outbox_subscriptions`)
	}
	pgtest.Program(t, "psql", nil, "--quiet", "--no-psqlrc", "--set", "ON_ERROR_STOP=1", "--dbname", s.url, "--file", path)
}
