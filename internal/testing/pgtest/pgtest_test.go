package pgtest

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/packfinderz/outbox/internal/testing/pgserver"
)

func TestMain(m *testing.M) { Main(m) }

// TestParallelTestsHaveDatabasesOfTheirOwn makes the same table in tests that are running at the same time.
func TestParallelTestsHaveDatabasesOfTheirOwn(t *testing.T) { //nolint:tparallel // the group ends, with its parallel subtests, before the checks
	t.Parallel()
	var mu sync.Mutex
	names := map[string]bool{}
	t.Run("tests", func(t *testing.T) {
		for _, name := range []string{"one", "two", "three"} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				pool := Pool(t)
				Exec(t, pool, "CREATE TABLE own (value text)")
				Exec(t, pool, "INSERT INTO own VALUES ($1)", name)
				var database, value string
				row := pool.QueryRow(t.Context(), "SELECT current_database(), string_agg(value, ' ') FROM own")
				if err := row.Scan(&database, &value); err != nil {
					t.Fatal(err)
				}
				if value != name {
					t.Errorf("rows of %q, want only those of %q", value, name)
				}
				mu.Lock()
				defer mu.Unlock()
				names[database] = true
			})
		}
	})
	if len(names) != 3 {
		t.Errorf("databases: %v, want three", names)
	}
	// The subtests have ended, so that theirs must be gone.
	pool := Pool(t)
	for name := range names {
		var left int
		err := pool.QueryRow(t.Context(), "SELECT count(*) FROM pg_database WHERE datname = $1", name).Scan(&left)
		if err != nil || left != 0 {
			t.Errorf("database %s: %d left, %v", name, left, err)
		}
	}
}

func TestServerRestarts(t *testing.T) {
	t.Parallel()
	server := Server(t, map[string]string{"fsync": "on", "synchronous_commit": "on"})
	own := existing(t, server.TCPURL("postgres"))
	name, err := own.createDatabase(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(t.Context(), pgserver.Immediate); err != nil {
		t.Fatal(err)
	}
	if err := own.dropDatabase(t.Context(), name); err != nil {
		t.Error(err)
	}
}

// TestExistingServer is the case of OUTBOX_TEST_DATABASE_URL.
func TestExistingServer(t *testing.T) {
	t.Parallel()
	own := existing(t, URL(t)+"&application_name=kept")
	name, err := own.createDatabase(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	other := own.url(name)
	if !strings.Contains(other, name) || !strings.Contains(other, "application_name=kept") {
		t.Errorf("address %s lacks the database or the options", other)
	}
	if err := own.dropDatabase(context.Background(), name); err != nil {
		t.Error(err)
	}
	if _, err := existingServer("host=/tmp"); err == nil {
		t.Error("an address that is no URL was taken")
	}
}

func existing(t *testing.T, address string) *server {
	t.Helper()
	own, err := existingServer(address)
	if err != nil {
		t.Fatal(err)
	}
	return own
}
