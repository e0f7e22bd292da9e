package pgtest

import (
	"errors"
	"testing"

	"github.com/packfinderz/outbox/internal/testing/pgserver"
)

// ProgramPath is the path of one of PostgreSQL's client programs. The servers that are installed for a version that was asked
// for have none, and those of an older version do not work with them: then, and only then, the test is left out.
func ProgramPath(t testing.TB, name string) string {
	t.Helper()
	path, err := pgserver.Program(name)
	if errors.Is(err, pgserver.ErrNoProgram) && pgserver.Version() != "" {
		t.Skipf("left out on PostgreSQL %s: there is no %s for it here", pgserver.Version(), name)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}
