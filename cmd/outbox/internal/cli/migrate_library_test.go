package cli_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/packfinderz/outbox/internal/migrations"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/ops/audit"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/pgstream"
)

// TestMigrateByLibrary has the library and the program agree on what is applied, whoever was first.
func TestMigrateByLibrary(t *testing.T) {
	t.Parallel()
	shape := pgstream.Shape{Slots: 5, Shards: 4}
	for name, test := range map[string]struct {
		library func(context.Context, *pgxpool.Pool) error
		flags   []string
	}{
		"stream": {pgstream.Migrate, nil},
		"shape": {
			func(ctx context.Context, pool *pgxpool.Pool) error {
				return pgstream.Stream{}.Migrate(ctx, pool, shape)
			}, []string{"--slots", "5", "--shards", "4"},
		},
		"schema": {
			func(ctx context.Context, pool *pgxpool.Pool) error {
				return pgstream.Stream{Schema: `a"b; --'$$`}.Migrate(ctx, pool, pgstream.Shape{})
			}, []string{"--schema", `a"b; --'$$`},
		},
		"audit": {
			func(ctx context.Context, pool *pgxpool.Pool) error { return audit.Migrate(ctx, pool, "events") },
			[]string{"--schema", "events", "--audit"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, args := migrating(t, pgstream.LayoutName)
			up := args("up", test.flags...)
			same := args("status", withoutShape(test.flags)...)
			down := args("down", withoutShape(test.flags)...)

			ok(t, "", up...)
			byProgram := relations(t, pool)
			for range 2 {
				if err := test.library(t.Context(), pool); err != nil {
					t.Fatalf("the library after the program: %v", err)
				}
			}
			if got := relations(t, pool); got != byProgram {
				t.Errorf("the library made %s, the program %s", got, byProgram)
			}
			ok(t, "", down...)

			if err := test.library(t.Context(), pool); err != nil {
				t.Fatal(err)
			}
			if got := relations(t, pool); got != byProgram {
				t.Errorf("the library made %s, the program %s", got, byProgram)
			}
			if got := ok(t, "", same...); strings.Contains(got, "pending") || !strings.Contains(got, "applied") {
				t.Errorf("status after the library: %s", got)
			}
			if got := ok(t, "", up...); !strings.Contains(got, "nothing to do") {
				t.Errorf("up after the library: %s", got)
			}
			ok(t, "", down...)
		})
	}
}

// withoutShape leaves out what only migrate up has.
func withoutShape(flags []string) []string {
	if len(flags) > 0 && flags[0] == "--slots" {
		return nil
	}
	return flags
}

// TestMigrateByLibraryGoesOn has goose apply some of the files and the library the rest.
func TestMigrateByLibraryGoesOn(t *testing.T) {
	t.Parallel()
	pool, args := migrating(t, pgstream.LayoutName)
	files, err := pgstream.Migrations(pgstream.Shape{Slots: 4})
	if err != nil {
		t.Fatal(err)
	}
	db := stdlib.OpenDBFromPool(pool)
	defer func() { _ = db.Close() }()
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithTableName(migrations.VersionTable(pgstream.LayoutName, "outbox_stream")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.UpTo(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	if err := (pgstream.Stream{}).Migrate(t.Context(), pool, pgstream.Shape{Slots: 8}); err == nil || !strings.Contains(err.Error(), "has 4 slots") {
		t.Errorf("another shape: %v", err)
	}
	if err := pgstream.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	if got := ok(t, "", args("up")...); !strings.Contains(got, "nothing to do") {
		t.Errorf("up after the library: %s", got)
	}
	if err := (pgstream.Stream{}).CheckSchema(t.Context(), pool); err != nil {
		t.Error(err)
	}
}

// TestMigrateLock has the program, goose and the library wait for each other.
func TestMigrateLock(t *testing.T) {
	t.Parallel()
	if migrations.LockID != lock.DefaultLockID {
		t.Errorf("the lock is %d, goose's is %d", migrations.LockID, lock.DefaultLockID)
	}
	pool, args := migrating(t, pgstream.LayoutName)
	free := pgtest.Hold(t, pool, `SELECT pg_advisory_xact_lock($1)`, lock.DefaultLockID)
	ended, program := make(chan error), make(chan string)
	go func() { ended <- pgstream.Migrate(t.Context(), pool) }()
	go func() { program <- ok(t, "", args("up")...) }()
	await.Until(t, "both ask for the lock", func() (both bool) {
		err := pool.QueryRow(t.Context(), `SELECT count(*) = 2 FROM pg_stat_activity
			WHERE datname = current_database() AND query LIKE '%pg_try_advisory%' AND pid <> pg_backend_pid()`).Scan(&both)
		return err == nil && both
	})
	// Goose makes its version table before it takes the lock.
	if got := relations(t, pool); strings.Contains(got, "outbox_stream ") {
		t.Errorf("something was made while another one migrates: %s", got)
	}
	free()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	<-program
	if got := ok(t, "", args("up")...); !strings.Contains(got, "nothing to do") {
		t.Errorf("up after both: %s", got)
	}
}

// TestMigrateByLibraryOthers refuses a stream that somebody else made, as the program does.
func TestMigrateByLibraryOthers(t *testing.T) {
	t.Parallel()
	pool, _ := migrating(t, pgstream.LayoutName)
	files, err := pgstream.Migrations(pgstream.Shape{})
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Migrate(t, pool, "", files)
	before := relations(t, pool)
	if err := pgstream.Migrate(t.Context(), pool); err == nil || !strings.Contains(err.Error(), "was not made by outbox") {
		t.Errorf("the library says %v", err)
	}
	if got := relations(t, pool); got != before {
		t.Errorf("the refusal changed something: %s", got)
	}
}
