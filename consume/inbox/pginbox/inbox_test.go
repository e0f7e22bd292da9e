package pginbox_test

import (
	"context"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/consume/inbox/pginbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

// TestPlaces has the table elsewhere and called otherwise, also by names that would break
// SQL if they were not quoted.
func TestPlaces(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]pginbox.Config{
		"default":          {},
		"a schema":         {Schema: "events"},
		"a name":           {Table: "handled"},
		"the longest":      {Table: strings.Repeat("n", 63)},
		"a hostile name":   {Schema: `a"b; --`, Table: `x"; DROP TABLE y; --` + "\n'$$"},
		"one with percent": {Table: "100%d"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.Pool(t)
			files, err := pginbox.Migrations(config)
			if err != nil {
				t.Fatal(err)
			}
			pgtest.Migrate(t, pool, config.Schema, files)
			in, err := pginbox.New(config)
			if err != nil {
				t.Fatal(err)
			}
			event := uuid.New()
			for _, want := range []bool{true, false} {
				ran, err := in.Handle(t.Context(), pool, consumer, event, func(context.Context, pgx.Tx) error { return nil })
				if ran != want || err != nil {
					t.Errorf("handled: %t, %v; want %t", ran, err, want)
				}
			}
			if n, err := in.Purge(t.Context(), pool, time.Microsecond); n != 1 || err != nil {
				t.Errorf("purged %d, %v", n, err)
			}
			down(t, pool, config.Schema, files)
		})
	}
}

// down runs the other half of the migrations, after which nothing may be left.
func down(t *testing.T, pool interface {
	BeginTx(context.Context, pgx.TxOptions) (pgx.Tx, error)
}, schema string, files fs.FS) {
	t.Helper()
	file, err := fs.ReadFile(files, "00001_outbox_inbox.sql")
	if err != nil {
		t.Fatal(err)
	}
	_, statements, _ := strings.Cut(string(file), "-- +goose Down")
	err = pgx.BeginTxFunc(t.Context(), pool, pgx.TxOptions{}, func(tx pgx.Tx) error {
		if schema != "" {
			if _, err := tx.Exec(t.Context(), "SET LOCAL search_path TO "+pgx.Identifier{schema}.Sanitize()); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(t.Context(), statements); err != nil {
			return err
		}
		var left int
		err := tx.QueryRow(t.Context(), `SELECT count(*) FROM pg_class WHERE relnamespace NOT IN
(SELECT oid FROM pg_namespace WHERE nspname LIKE 'pg\_%' OR nspname = 'information_schema')`).Scan(&left)
		if left > 0 {
			t.Errorf("%d relations are left", left)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestConfigRefused(t *testing.T) {
	t.Parallel()
	for want, config := range map[string]pginbox.Config{
		"the table's name has 64 bytes":        {Table: strings.Repeat("n", 64)},
		"the table's name contains a NUL":      {Table: "a\x00"},
		"the schema's name is not valid UTF-8": {Schema: "\xff"},
		"the redelivery horizon is -1h0m0s":    {Horizon: -time.Hour},
	} {
		if _, err := pginbox.New(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New: %v, want %q", err, want)
		}
		if _, err := pginbox.Migrations(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Migrations: %v, want %q", err, want)
		}
	}
}
