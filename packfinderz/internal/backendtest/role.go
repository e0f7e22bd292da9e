package backendtest

import (
	"context"
	"crypto/rand"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/outboxtest/testdb"
	"github.com/packfinderz/outbox/packfinderz/migrations"
)

// WorkerURL is the address of a database for a role that has the worker's rights, and no others. Roles belong to
// the whole server, so that each test has one under a name of its own.
func WorkerURL(t testing.TB, database string, pool *pgxpool.Pool) string {
	t.Helper()
	role, password := "packfinderz_worker_"+strings.ToLower(rand.Text()), rand.Text()
	testdb.Exec(t, pool, `CREATE ROLE `+role+` LOGIN PASSWORD '`+password+`'`)
	t.Cleanup(func() {
		for _, sql := range []string{`DROP OWNED BY ` + role, `DROP ROLE ` + role} {
			if _, err := pool.Exec(context.Background(), sql); err != nil {
				t.Error(err)
			}
		}
	})
	testdb.Exec(t, pool, strings.ReplaceAll(migrations.WorkerRole(), "packfinderz_worker", role))
	address, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	address.User = url.UserPassword(role, password)
	return address.String()
}
