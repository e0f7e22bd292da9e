package migrate_test

import (
	"log/slog"
	"sync"
	"testing"

	"github.com/packfinderz/outbox/outboxtest/testdb"
	"github.com/packfinderz/outbox/packfinderz/internal/backendtest"
	"github.com/packfinderz/outbox/packfinderz/internal/migrate"
)

// TestUp makes all tables, by two at once, and does nothing when it is run again. They are those that the other tests have.
func TestUp(t *testing.T) {
	t.Parallel()
	url := testdb.URL(t)
	for range 2 {
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				if err := migrate.Up(t.Context(), url, slog.New(slog.DiscardHandler)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	const columns = `
		SELECT string_agg(concat_ws(' ', table_name, column_name, udt_name, is_nullable, column_default), ', ' ORDER BY table_name, column_name)
		FROM information_schema.columns WHERE table_schema = 'public' AND table_name NOT LIKE '%goose'`
	var got, want string
	if err := testdb.Connect(t, url).QueryRow(t.Context(), columns).Scan(&got); err != nil {
		t.Fatal(err)
	}
	_, pool := backendtest.Database(t)
	if err := pool.QueryRow(t.Context(), columns).Scan(&want); err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("the tables are\n%s\nwant\n%s", got, want)
	}
}
