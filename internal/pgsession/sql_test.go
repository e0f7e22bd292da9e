package pgsession_test

import (
	"database/sql"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/packfinderz/outbox/internal/pgsession"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

// TestSQLOpenTransaction gives a connection of database/sql back in the middle of a transaction, as
// after an error: it is closed, and does not lie there with its locks until it is lent again.
func TestSQLOpenTransaction(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	other := pgtest.Connect(t, url+"&lock_timeout=30s")
	pgtest.Exec(t, other, `CREATE TABLE held ()`)
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	conn, err := pgsession.BorrowSQL(db).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{"BEGIN", "LOCK TABLE held"} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	conn.Release()
	if open := db.Stats().OpenConnections; open != 0 {
		t.Errorf("%d connections are open", open)
	}
	pgtest.Exec(t, other, `DROP TABLE held`)
}
