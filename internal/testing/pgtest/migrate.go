package pgtest

// A layout's tables, for tests of packages that do without goose.

import (
	"context"
	"io/fs"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/internal/migrations"
)

// Migrate applies the Up part of every goose file in a schema, which it makes, or in the default one. It notes no version.
func Migrate(t testing.TB, pool *pgxpool.Pool, schema string, files fs.FS) {
	t.Helper()
	if err := migrate(t.Context(), pool, schema, files); err != nil {
		t.Fatal(err)
	}
}

func migrate(ctx context.Context, pool *pgxpool.Pool, schema string, files fs.FS) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if schema != "" {
		name := pgx.Identifier{schema}.Sanitize()
		if _, err := conn.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+name); err != nil {
			return err
		}
		if _, err := conn.Exec(ctx, "SET search_path TO "+name); err != nil {
			return err
		}
		defer func() { _, _ = conn.Exec(context.WithoutCancel(ctx), "RESET search_path") }()
	}
	list, err := migrations.Read(files)
	if err != nil {
		return err
	}
	for _, migration := range list {
		for _, statement := range migration.Up {
			if _, err := conn.Exec(ctx, statement); err != nil {
				return err
			}
		}
	}
	return nil
}
