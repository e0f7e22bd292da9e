package migrations_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/internal/migrations"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/outboxtest/await"
)

// shop is a set of two files that run in transactions and two that do not.
func shop(schema string) migrations.Set {
	return migrations.Set{Schema: schema, Layout: "shop", Table: "orders", Files: migrations.Static(shopFiles())}
}

func shopFiles() fstest.MapFS {
	return fstest.MapFS{
		"00001_orders.sql": {Data: []byte("-- +goose Up\nCREATE TABLE orders (id int);\nINSERT INTO orders VALUES (1);\n")},
		"00002_index.sql":  {Data: []byte("-- +goose NO TRANSACTION\n-- +goose Up\nCREATE INDEX CONCURRENTLY orders_id ON orders (id);\n")},
		"00003_lines.sql":  {Data: []byte("-- +goose Up\nCREATE TABLE lines (id int);\n")},
		"00004_index.sql":  {Data: []byte("-- +goose NO TRANSACTION\n-- +goose Up\nCREATE INDEX CONCURRENTLY lines_id ON lines (id);\n")},
	}
}

// single is a pool of one connection.
func single(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 1
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// query is one value, as text.
func query(t *testing.T, pool *pgxpool.Pool, sql string) (value string) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), `SELECT coalesce((`+sql+`)::text, '')`).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

const notedSQL = `SELECT string_agg(version_id::text, ' ' ORDER BY id) FROM `

// TestUp needs one connection, leaves no search path behind, and does nothing the second time.
func TestUp(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{"", "shop"} {
		pool := single(t, pgtest.URL(t))
		before := query(t, pool, `SELECT current_setting('search_path')`)
		for range 2 {
			if err := shop(schema).Up(t.Context(), pool); err != nil {
				t.Fatal(err)
			}
		}
		place := "public"
		if schema != "" {
			place = schema
		}
		if got := query(t, pool, notedSQL+place+`.orders_shop_goose`); got != "0 1 2 3 4" {
			t.Errorf("noted are %s", got)
		}
		if got := query(t, pool, `SELECT string_agg(indexrelid::regclass::text, ' ' ORDER BY 1) FROM pg_index WHERE indisvalid AND indrelid = '`+place+`.lines'::regclass`); !strings.Contains(got, "lines_id") {
			t.Errorf("the indexes are %q", got)
		}
		if got := query(t, pool, `SELECT count(*) FROM `+place+`.orders`); got != "1" {
			t.Errorf("the first file was applied %s times", got)
		}
		if got := query(t, pool, `SELECT current_setting('search_path')`); got != before {
			t.Errorf("the search path is %s, was %s", got, before)
		}
	}
}

// TestUpAtOnce has several processes begin together, on a database where everything is missing.
func TestUpAtOnce(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	pool := pgtest.Connect(t, url)
	free := pgtest.Hold(t, pool, `SELECT pg_advisory_xact_lock($1)`, int64(migrations.LockID))
	const processes = 4
	ended := make(chan error)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // two that wait for each other would do so for ever
	defer cancel()
	for range processes {
		own := single(t, url)
		go func() { ended <- shop("shop").Up(ctx, own) }()
	}
	await.Until(t, "all ask for the lock", func() bool {
		return query(t, pool, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%pg_try_advisory%'
			AND pid <> pg_backend_pid()`) == strconv.Itoa(processes)
	})
	if got := query(t, pool, `SELECT to_regnamespace('shop')`); got != "" {
		t.Error("something was made while another one migrates")
	}
	free()
	for range processes {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if got := query(t, pool, notedSQL+`shop.orders_shop_goose`); got != "0 1 2 3 4" {
		t.Errorf("noted are %s", got)
	}
	if got := query(t, pool, `SELECT count(*) FROM shop.orders`); got != "1" {
		t.Errorf("the first file was applied %s times", got)
	}
}

// TestUpWhole breaks in the middle of a file: nothing of it is left, what came before stays, and the next run goes on.
func TestUpWhole(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	files := shopFiles()
	files["00003_lines.sql"] = &fstest.MapFile{Data: []byte("-- +goose Up\nCREATE TABLE lines (id int);\nSELECT 1/0;\n")}
	broken := migrations.Set{Layout: "shop", Table: "orders", Files: migrations.Static(files)}
	if err := broken.Up(t.Context(), pool); err == nil || !strings.Contains(err.Error(), "00003_lines.sql") {
		t.Fatalf("a broken file: %v", err)
	}
	if got := query(t, pool, notedSQL+`orders_shop_goose`); got != "0 1 2" {
		t.Errorf("noted are %s", got)
	}
	if got := query(t, pool, `SELECT to_regclass('lines')`); got != "" {
		t.Error("half of a file was applied")
	}
	if err := shop("").Up(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	if got := query(t, pool, notedSQL+`orders_shop_goose`); got != "0 1 2 3 4" {
		t.Errorf("noted are %s", got)
	}
}

// TestUpRefuses leaves tables of others alone, here and further along the search path.
func TestUpRefuses(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	pgtest.Exec(t, pool, `CREATE TABLE orders (id int)`)
	if err := shop("").Up(t.Context(), pool); !errors.Is(err, migrations.ErrTableExists) {
		t.Errorf("a table of somebody else: %v", err)
	}
	config := pool.Config()
	config.ConnConfig.RuntimeParams["search_path"] = "app, public"
	pgtest.Exec(t, pool, `CREATE SCHEMA app`)
	path, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(path.Close)
	if err := shop("").Up(t.Context(), path); !errors.Is(err, migrations.ErrElsewhere) {
		t.Errorf("a table further along the search path: %v", err)
	}
	if got := query(t, pool, `SELECT count(*) FROM pg_class WHERE relname LIKE '%goose%'`); got != "0" {
		t.Error("a refusal wrote something")
	}
}

// TestUpLost says that the table is gone, and its advice makes it again.
func TestUpLost(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	set := shop("")
	set.Lost = true
	if err := set.Up(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, pool, `DROP TABLE orders`)
	err := set.Up(t.Context(), pool)
	const advice = `DROP TABLE "orders_shop_goose"`
	if !errors.Is(err, migrations.ErrTableLost) || !strings.Contains(err.Error(), advice) {
		t.Fatalf("a table that is gone: %v", err)
	}
	pgtest.Exec(t, pool, `DROP TABLE lines; `+advice)
	if err := set.Up(t.Context(), pool); err != nil {
		t.Error(err)
	}
}

// TestUpBesideGoose has goose make the version table, which it does without the lock, while Up applies the first file.
func TestUpBesideGoose(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	goose, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = goose.Rollback(t.Context()) }()
	_, err = goose.Exec(t.Context(), `CREATE TABLE orders_shop_goose (id integer PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY,
		version_id bigint NOT NULL, is_applied boolean NOT NULL, tstamp timestamp NOT NULL DEFAULT now());
		INSERT INTO orders_shop_goose (version_id, is_applied) VALUES (0, true)`)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- shop("").Up(t.Context(), pool) }()
	pgtest.AwaitBlocked(t, pool, 1)
	if err := goose.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if got := query(t, pool, notedSQL+`orders_shop_goose`); got != "0 1 2 3 4" {
		t.Errorf("noted are %s", got)
	}
}
