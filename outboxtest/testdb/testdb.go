// Package testdb gives the tests of a service a PostgreSQL: a fresh database for each test, in one private cluster that
// all packages of a test run share, or a cluster of their own. Nothing has to be installed but PostgreSQL's server
// programs, and nothing has to be started or cleaned up. Packages that use it let Main run their tests:
//
//	func TestMain(m *testing.M) { testdb.Main(m) }
//
// A missing PostgreSQL fails the tests and says what to install; it never skips them. The variable
// OUTBOX_TEST_DATABASE_URL names an existing server to use instead.
package testdb

import (
	"io/fs"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

// Main runs the tests of a package, to be called by its TestMain. Goroutines that the tests leave behind fail the run;
// the options are for those that a library leaves behind by design. It does not return.
func Main(m *testing.M, options ...goleak.Option) { pgtest.Main(m, options...) }

// URL is the address of an empty database that only this test has. It is dropped at the end of the test, with whatever
// connections it still has.
func URL(t testing.TB) string {
	t.Helper()
	return pgtest.URL(t)
}

// Pool is URL with a pool, which is closed at the end of the test.
func Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return pgtest.Pool(t)
}

// Connect is a pool on a database that is there, closed at the end of the test.
func Connect(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	return pgtest.Connect(t, url)
}

// Exec runs a statement that must succeed.
func Exec(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	pgtest.Exec(t, pool, sql, args...)
}

// Migrate applies the Up part of every goose file, without goose. It knows as much of goose as the files of the layouts
// use.
func Migrate(t testing.TB, pool *pgxpool.Pool, files fs.FS) {
	t.Helper()
	pgtest.Migrate(t, pool, "", files)
}

// AwaitBlocked waits until at least n sessions of the pool's database wait for a lock.
func AwaitBlocked(t testing.TB, pool *pgxpool.Pool, n int) {
	t.Helper()
	pgtest.AwaitBlocked(t, pool, n)
}
