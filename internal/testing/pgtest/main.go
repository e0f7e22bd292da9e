package pgtest

// The frame around the tests of a package.

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/packfinderz/outbox/internal/testing/pgserver"
)

// leakPatience is how long goroutines may take to end after the tests: pgxpool has some that end half a second after
// their pool, which is longer than goleak waits.
const leakPatience = 5 * time.Second

// Main runs the tests of a package, to be called by its TestMain. Goroutines that the tests leave behind fail the run.
// It does not return. The options are for goroutines that a library leaves behind by design.
func Main(m *testing.M, options ...goleak.Option) {
	pgserver.RunKeeperIfAsked()
	code := m.Run()
	if code == 0 {
		if err := findLeaks(options); err != nil {
			fmt.Fprintln(os.Stderr, "testdb: the tests left goroutines behind (a pgstream.Store that was not closed?):", err)
			code = 1
		}
	}
	// The hold on the shared cluster ends with the process.
	os.Exit(code)
}

func findLeaks(options []goleak.Option) error {
	// pgx ends a connection whose query was cancelled in the background, and gives the server up to 15 s for it.
	options = append(options, goleak.IgnoreAnyFunction("github.com/jackc/pgx/v5/pgconn.(*PgConn).asyncClose.func1"))
	for deadline := time.Now().Add(leakPatience); ; {
		err := goleak.Find(options...)
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}
