package pgsession_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/internal/pgsession"
	"github.com/packfinderz/outbox/internal/testing/pgbouncer"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func newPool(t *testing.T, address string) *pgsession.Pool {
	t.Helper()
	pool, err := pgsession.New(pgtest.Connect(t, address), 2,
		[]pgsession.Setting{{Name: "synchronous_commit", Value: "off"}, {Name: "enable_sort", Value: "off"}}, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// TestSettings: a statement has its settings and its isolation level, directly and behind a pooler,
// where they end with it.
func TestSettings(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]string{"direct": "", "transaction": pgbouncer.Transaction, "session": pgbouncer.Session} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			direct := pgtest.URL(t)
			pgtest.Exec(t, pgtest.Connect(t, direct), `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = ''serializable''', current_database()); END $$`)
			address := direct
			if mode != "" {
				address = pgbouncer.Start(t, direct, pgbouncer.Config{Mode: mode, Servers: 2})
			}
			pool := newPool(t, address)
			const look = `SELECT current_setting('transaction_isolation') || ' ' || current_setting('synchronous_commit') || ' ' || current_setting('enable_sort')`
			check := func(how string, row pgx.Row) {
				var got string
				if err := row.Scan(&got); err != nil || got != "read committed off off" {
					t.Errorf("%s: %q: %v", how, got, err)
				}
			}
			check("a statement", pool.QueryRow(t.Context(), look))
			queue := &pgx.Batch{}
			queue.Queue(`SELECT $1::int`, 1)
			queue.Queue(look)
			results := pool.SendBatch(t.Context(), queue)
			if _, err := results.Exec(); err != nil {
				t.Error(err)
			}
			check("a batch", results.QueryRow())
			if err := results.Close(); err != nil {
				t.Error(err)
			}
			err := pgx.BeginTxFunc(t.Context(), pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
				check("a transaction", tx.QueryRow(t.Context(), look))
				// With an argument: without one pgx prepares nothing for Exec.
				if _, err := tx.Exec(t.Context(), `SELECT $1::int`, 1); err != nil {
					return err
				}
				rows, err := tx.Query(t.Context(), `SELECT $1::int + 1`, 1)
				if err != nil {
					return err
				}
				if _, err := pgx.CollectRows(rows, pgx.RowTo[int]); err != nil {
					return err
				}
				queue := &pgx.Batch{}
				queue.Queue(`SELECT $1::int + 2`, 1)
				return tx.SendBatch(t.Context(), queue).Close()
			})
			if err != nil {
				t.Error(err)
			}
			if mode == pgbouncer.Transaction {
				pgbouncer.AssertNoTraces(t, direct, address, 2)
			}
		})
	}
}

// TestCommitFails: a statement whose commit fails has failed, and the connection goes on.
func TestCommitFails(t *testing.T) {
	t.Parallel()
	direct := pgtest.URL(t)
	pgtest.Exec(t, pgtest.Connect(t, direct), `CREATE TABLE once (n int UNIQUE DEFERRABLE INITIALLY DEFERRED)`)
	pool := newPool(t, pgbouncer.Start(t, direct, pgbouncer.Config{Mode: pgbouncer.Transaction, Servers: 1}))
	const twice = `INSERT INTO once SELECT $1::int FROM generate_series(1, 2) RETURNING n`
	for name, work := range map[string]func(ctx context.Context) error{
		"exec": func(ctx context.Context) error {
			_, err := pool.Exec(ctx, twice, 1)
			return err
		},
		"query": func(ctx context.Context) error {
			rows, err := pool.Query(ctx, twice, 1)
			if err != nil {
				return err
			}
			_, err = pgx.CollectRows(rows, pgx.RowTo[int])
			return err
		},
		"query row": func(ctx context.Context) error {
			var n int
			return pool.QueryRow(ctx, twice, 1).Scan(&n)
		},
		"batch": func(ctx context.Context) error {
			queue := &pgx.Batch{}
			queue.Queue(twice, 1)
			return pool.SendBatch(ctx, queue).Close()
		},
		"a statement that fails": func(ctx context.Context) error {
			_, err := pool.Exec(ctx, `SELECT 1 / $1::int`, 0)
			return err
		},
	} {
		if err := work(t.Context()); err == nil {
			t.Errorf("%s: no error", name)
		}
		var rows int
		if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM once`).Scan(&rows); err != nil || rows != 0 {
			t.Errorf("after %s: %d rows: %v", name, rows, err)
		}
	}
}

// TestShares tells the modes of a pooler apart, and a server from either.
func TestShares(t *testing.T) {
	t.Parallel()
	direct := pgtest.URL(t)
	for name, c := range map[string]struct {
		address        string
		pooled, shares bool
	}{
		"direct":      {direct, false, false},
		"session":     {pgbouncer.Start(t, direct, pgbouncer.Config{Mode: pgbouncer.Session}), true, false},
		"transaction": {pgbouncer.Start(t, direct, pgbouncer.Config{Mode: pgbouncer.Transaction}), true, true},
	} {
		conn, err := pgx.Connect(t.Context(), c.address)
		if err != nil {
			t.Fatal(err)
		}
		pooled, err := pgsession.Pooled(t.Context(), conn)
		if err != nil || pooled != c.pooled {
			t.Errorf("%s: pooled %t: %v", name, pooled, err)
		}
		shares, err := pgsession.Shares(t.Context(), conn)
		if err != nil || shares != c.shares {
			t.Errorf("%s: shares %t: %v", name, shares, err)
		}
		if err := conn.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
