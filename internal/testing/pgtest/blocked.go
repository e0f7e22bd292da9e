package pgtest

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/outboxtest/await"
)

// AwaitBlocked waits until at least n sessions of the pool's database wait for a lock.
func AwaitBlocked(t testing.TB, pool *pgxpool.Pool, n int) {
	t.Helper()
	await.Until(t, fmt.Sprintf("%d sessions to wait for locks", n), func() bool {
		var blocked int
		err := pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&blocked)
		if err != nil {
			t.Fatal(err)
		}
		return blocked >= n
	})
}
