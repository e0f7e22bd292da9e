// Package backendtest gives a test what the backend stands on: a database with all its tables, and services on it.
package backendtest

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/outboxtest/testdb"
	"github.com/packfinderz/outbox/packfinderz/internal/licensing"
	"github.com/packfinderz/outbox/packfinderz/internal/pftest"
	"github.com/packfinderz/outbox/packfinderz/migrations"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox"
)

// Database is the address of a database with the outbox's tables and the backend's, and a pool on it.
func Database(t testing.TB) (url string, pool *pgxpool.Pool) {
	t.Helper()
	url = testdb.URL(t)
	pool = testdb.Connect(t, url)
	pftest.Migrate(t, pool)
	testdb.Migrate(t, pool, migrations.Sample())
	return url, pool
}

// Licensing is the service on a database.
func Licensing(t testing.TB, pool *pgxpool.Pool) *licensing.Service {
	t.Helper()
	events, err := outbox.NewService(outbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	service, err := licensing.New(pftest.GORM(t, pool), events)
	if err != nil {
		t.Fatal(err)
	}
	return service
}

// Count is the one number that a query answers.
func Count(t testing.TB, pool *pgxpool.Pool, query string, args ...any) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}
