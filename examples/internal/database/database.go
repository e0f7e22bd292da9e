// Package database gives an example its PostgreSQL: the one its user names, or a private one.
package database

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/internal/migrations"
	"github.com/packfinderz/outbox/internal/testing/pgserver"
)

// Database is a pool on the example's database.
type Database struct {
	*pgxpool.Pool
	// URL is its address.
	URL string
	// Private is whether the server was started for this example and ends with it.
	Private bool

	server *pgserver.Server
}

// RunKeeperIfAsked must be the first call in main: the process that looks after a private server
// is the same program, started again.
func RunKeeperIfAsked() { pgserver.RunKeeperIfAsked() }

// Open connects to a database; an empty url starts a private server.
func Open(ctx context.Context, url string) (_ *Database, err error) {
	db := &Database{URL: url}
	if url == "" {
		if db.server, err = pgserver.Start(ctx, pgserver.Config{}); err != nil {
			return nil, fmt.Errorf("start a private PostgreSQL: %w", err)
		}
		db.URL, db.Private = db.server.URL("postgres"), true
	}
	if db.Pool, err = pgxpool.New(ctx, db.URL); err != nil {
		return nil, errors.Join(fmt.Errorf("connect: %w", err), db.stop())
	}
	return db, nil
}

// Another makes a database beside this one, on its private server, and returns its URL.
func (db *Database) Another(ctx context.Context, name string) (string, error) {
	if db.server == nil {
		return "", errors.New("the server is not this program's own")
	}
	if _, err := db.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()); err != nil {
		return "", fmt.Errorf("make the database %s: %w", name, err)
	}
	return db.server.URL(name), nil
}

// Migrate applies goose files and notes them as the outbox program does, in a table of their own for every table of a layout.
func (db *Database) Migrate(ctx context.Context, layout, table string, files fs.FS) error {
	return migrations.Set{Layout: layout, Table: table, Files: migrations.Static(files)}.Up(ctx, db.Pool)
}

// Close closes the pool and ends a private server.
func (db *Database) Close() error {
	db.Pool.Close()
	return db.stop()
}

func (db *Database) stop() error {
	if db.server == nil {
		return nil
	}
	return db.server.Stop()
}
