// Package pftest has what the tests of several packages need: the outbox's tables in a database of
// their own, and a valid payload of every event type.
package pftest

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"gorm.io/gorm"

	"github.com/packfinderz/outbox/layouts/packfinderz"
	"github.com/packfinderz/outbox/outboxtest/testdb"
	"github.com/packfinderz/outbox/packfinderz/internal/database"
	"github.com/packfinderz/outbox/packfinderz/internal/migrate"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/registry"
)

// Pool is a pool on a fresh database that has the outbox's tables.
func Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool := testdb.Pool(t)
	Migrate(t, pool)
	return pool
}

// Migrate makes the outbox's tables.
func Migrate(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	files, err := packfinderz.Migrations(packfinderz.Layout())
	if err != nil {
		t.Fatal(err)
	}
	testdb.Migrate(t, pool, files)
	if _, err := migrate.AddValues(t.Context(), pool, registry.Layout()); err != nil {
		t.Fatal(err)
	}
}

// GORM is the same database for GORM.
func GORM(t testing.TB, pool *pgxpool.Pool) *gorm.DB {
	t.Helper()
	db, err := database.Open(pool)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db.DB
}
