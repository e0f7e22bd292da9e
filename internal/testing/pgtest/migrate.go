package pgtest

// A layout's tables, for tests of packages that do without goose.

import (
	"context"
	"io/fs"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Migrate applies the Up part of every goose file in a schema, which it makes, or in the default one. It knows just
// as much of goose as our own files use; that goose agrees is tested with goose itself, beside the CLI.
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
	paths, err := fs.Glob(files, "*.sql")
	if err != nil {
		return err
	}
	for _, path := range paths {
		file, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		for _, statement := range upStatements(string(file)) {
			if _, err := conn.Exec(ctx, statement); err != nil {
				return err
			}
		}
	}
	return nil
}

// upStatements splits the Up part at lines that end in a semicolon, but for blocks that are marked as one statement.
func upStatements(file string) (statements []string) {
	var statement strings.Builder
	up, block := false, false
	for line := range strings.Lines(file) {
		ends := strings.HasSuffix(strings.TrimSpace(line), ";")
		switch directive, ok := strings.CutPrefix(strings.TrimSpace(line), "-- +goose "); {
		case ok && directive == "Up":
			up = true
			continue
		case ok && directive == "Down":
			return statements
		case ok:
			block = directive == "StatementBegin"
			ends = !block
		}
		if !up {
			continue
		}
		statement.WriteString(line)
		if !block && ends {
			statements = append(statements, statement.String())
			statement.Reset()
		}
	}
	return statements
}
