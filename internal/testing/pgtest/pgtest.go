// Package pgtest gives tests a PostgreSQL: a fresh database for each test, in one cluster that all packages of a test
// run share, or a cluster of their own. Packages that use it let Main run their tests:
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
//
// A missing PostgreSQL fails the tests and says what to install; it never skips them.
package pgtest

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/internal/testing/pgserver"
)

// cleanupTimeout limits what is done after a test, when its own context has ended.
const cleanupTimeout = 30 * time.Second

// URL returns the address of an empty database that only this test has. It is dropped at the end of the test, with
// whatever connections it still has.
func URL(t testing.TB) string {
	t.Helper()
	server, err := attached()
	if err != nil {
		t.Fatal(err)
	}
	name, err := server.createDatabase(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
		defer cancel()
		if err := server.dropDatabase(ctx, name); err != nil {
			t.Error(err)
		}
	})
	return server.url(name)
}

// Pool is URL with a pool, which is closed at the end of the test.
func Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return Connect(t, URL(t))
}

// Connect is a pool on a database that is there, closed at the end of the test.
func Connect(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatalf("pgtest: connecting: %v", err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// Exec runs a statement that must succeed.
func Exec(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("pgtest: running %q: %v", sql, err)
	}
}

// Server returns a cluster that only this test has, for tests that restart it or need settings of their own. Settings
// that are not given are those of pgserver.TestSettings. It ends with the test.
func Server(t testing.TB, settings map[string]string) *pgserver.Server {
	t.Helper()
	all := pgserver.TestSettings()
	for name, value := range settings {
		all[name] = value
	}
	return start(t, pgserver.Config{Settings: all})
}

// Standby returns a server that follows another one, with settings of its own on top. It ends with the test.
func Standby(t testing.TB, primary *pgserver.Server, settings map[string]string) *pgserver.Server {
	t.Helper()
	return start(t, pgserver.Config{Settings: settings, StandbyOf: primary})
}

// Copy returns a server that begins as a copy of another one's files, made by pg_basebackup while that runs. It ends
// with the test.
func Copy(t testing.TB, original *pgserver.Server) *pgserver.Server {
	t.Helper()
	return start(t, pgserver.Config{CopyOf: original})
}

func start(t testing.TB, config pgserver.Config) *pgserver.Server {
	t.Helper()
	server, err := pgserver.Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}
