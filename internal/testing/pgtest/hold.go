package pgtest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Hold takes locks in a transaction of its own and keeps them until free is called, or the test ends. Free may be
// called twice.
func Hold(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) (free func()) {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatalf("pgtest: beginning a transaction: %v", err)
	}
	free = func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) } // there is nothing to lose
	t.Cleanup(free)
	if _, err := tx.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("pgtest: running %q: %v", sql, err)
	}
	return free
}
