package pgstore_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/layouts/modkit"
	"github.com/packfinderz/outbox/outboxtest/storetest"
	"github.com/packfinderz/outbox/pgstore"
)

// TestConformanceSQL runs the suite on the connections of database/sql: of a layout that leases and
// of one whose claims keep a transaction open.
func TestConformanceSQL(t *testing.T) {
	t.Parallel()
	for name, features := range map[string]storetest.Features{
		"modkit":      {Expires: true, Backoff: true, DeliveredIsKept: true, CountsOnClaim: true},
		"packfinderz": {DeliveredIsKept: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, features, func(t *testing.T) storetest.Harness {
				t.Helper()
				return onSQL{newHarness(t, name)}
			})
		})
	}
}

// onSQL opens stores on database/sql.
type onSQL struct{ *harness }

func (h onSQL) Open(t *testing.T, options storetest.Options) outbox.Store {
	t.Helper()
	store, err := pgstore.NewSQL(openSQL(t, h.url), h.layout,
		pgstore.Config{Lease: options.Lease, MaxAttempts: options.MaxAttempts, WorkerID: options.WorkerID})
	if err != nil {
		t.Fatal(err)
	}
	return store.ScansAreQuick()
}

func openSQL(t *testing.T, url string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(8)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// TestSQLConnectionsGoBack has a pool of one connection, which the store and its neighbours share:
// each call gives it back, also after a statement that failed and a connection that broke.
func TestSQLConnectionsGoBack(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "modkit")
	h.Emit(t, 1)
	db := openSQL(t, h.url)
	db.SetMaxOpenConns(1)
	store, err := pgstore.NewSQL(db, h.layout, pgstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := store.Claim(over, outbox.ClaimRequest{Limit: 1}); err == nil {
		t.Error("a claim whose context had ended was made")
	}
	if _, err := db.ExecContext(t.Context(), `SELECT 1`); err != nil {
		t.Fatal(err)
	}
	batch, err := store.Claim(t.Context(), outbox.ClaimRequest{Limit: 10})
	if err != nil || len(batch.Messages()) != 1 {
		t.Fatalf("claimed %v: %v", batch, err)
	}
	// The server ends the connection: the store says so once at most, and then has another.
	if _, err := h.pool.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid()`); err != nil {
		t.Fatal(err)
	}
	for try := 0; ; try++ {
		_, err := batch.Settle(t.Context(), []outbox.Outcome{{Kind: outbox.Delivered}})
		if err == nil {
			break
		}
		if try == 2 {
			t.Fatal(err)
		}
	}
	if open := db.Stats().InUse; open != 0 {
		t.Errorf("%d connections have not come back", open)
	}
}

// TestSQLRefuses refuses drivers that are not pgx, at once.
func TestSQLRefuses(t *testing.T) {
	t.Parallel()
	db := sql.OpenDB(otherDriver{})
	t.Cleanup(func() { _ = db.Close() })
	_, err := pgstore.NewSQL(db, modkit.Layout(), pgstore.Config{})
	if !errors.Is(err, pgstore.ErrNotPGX) || !strings.Contains(err.Error(), "otherDriver") {
		t.Errorf("got %v", err)
	}
}

// otherDriver is a driver that is not pgx.
type otherDriver struct{}

func (d otherDriver) Driver() driver.Driver { return d }

func (otherDriver) Connect(context.Context) (driver.Conn, error) { return nil, errors.New("no") }
func (otherDriver) Open(string) (driver.Conn, error)             { return nil, errors.New("no") }
