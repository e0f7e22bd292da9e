// Package pftest has what the tests of several packages need: the outbox's tables in a database of
// their own, and a valid payload of every event type.
package pftest

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/packfinderz/outbox/internal/pgtest"
	"github.com/packfinderz/outbox/layouts/packfinderz"
)

// Pool is a pool on a fresh database that has the outbox's tables.
func Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.Pool(t)
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
	pgtest.Migrate(t, pool, "", files)
}

// GORM is the same database for GORM.
func GORM(t testing.TB, pool *pgxpool.Pool) *gorm.DB {
	t.Helper()
	conn := stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() { _ = conn.Close() }) // the pool is closed by itself
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: conn}), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	return db
}
