package pgtest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// AsRole is a pool on another one's database whose sessions are those of a role of the test's own. It may do what
// everybody may. The role is dropped at the end of the test.
func AsRole(t testing.TB, pool *pgxpool.Pool) *pgxpool.Pool {
	t.Helper()
	var role string
	if err := pool.QueryRow(t.Context(), `SELECT 'role_of_' || current_database()`).Scan(&role); err != nil {
		t.Fatalf("pgtest: asking for the database's name: %v", err)
	}
	Exec(t, pool, `CREATE ROLE `+role)
	t.Cleanup(func() {
		if _, err := pool.Exec(context.WithoutCancel(t.Context()), `DROP OWNED BY `+role+`; DROP ROLE `+role); err != nil {
			t.Errorf("pgtest: dropping a role: %v", err)
		}
	})
	config := pool.Config()
	config.ConnConfig.RuntimeParams["role"] = role
	own, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatalf("pgtest: connecting: %v", err)
	}
	t.Cleanup(own.Close)
	return own
}
