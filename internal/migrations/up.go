package migrations

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Set is the migrations of one table of one layout. Up and the outbox program's goose run agree on what is applied: they
// share the version table and the lock.
type Set struct {
	// Schema is made when it is missing; empty is the first schema of the search path.
	Schema string
	// Layout and Table name the version table. Version 1 makes the table.
	Layout, Table string
	// Lost has Up refuse if the table was made and is gone.
	Lost bool
	// Files returns the goose files. It is called with the lock held, and may look at what is there.
	Files func(ctx context.Context, db DB) (fs.FS, error)
}

// Static is a Set's Files, for files that do not depend on the database.
func Static(files fs.FS) func(context.Context, DB) (fs.FS, error) {
	return func(context.Context, DB) (fs.FS, error) { return files, nil }
}

// Up applies what is missing, file by file: each whole or not at all. Several may run at once.
func (s Set) Up(ctx context.Context, pool *pgxpool.Pool) error {
	for {
		next, err := s.step(ctx, pool)
		if err != nil {
			return err
		}
		if next == nil {
			return nil
		}
		if next.NoTransaction {
			if err := s.outside(ctx, pool, *next); err != nil {
				return err
			}
		}
	}
}

// step applies the next file in a transaction that holds the lock, and returns it; nil if there is none. A file
// that does not run in a transaction is only returned. One connection is enough, and a transaction is the one thing
// that every pooler keeps together.
func (s Set) step(ctx context.Context, pool *pgxpool.Pool) (next *Migration, err error) {
	// Above READ COMMITTED the snapshot would be older than the lock.
	err = pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if err := Lock(ctx, tx); err != nil {
			return err
		}
		if err := s.enter(ctx, tx, "SET LOCAL search_path TO "); err != nil {
			return err
		}
		if next, err = s.next(ctx, tx); err != nil || next == nil || next.NoTransaction {
			return err
		}
		return s.apply(ctx, tx, *next)
	})
	if err != nil {
		return nil, err
	}
	return next, nil
}

// next is the first file that is not applied, or nil.
func (s Set) next(ctx context.Context, db DB) (*Migration, error) {
	if err := RefuseElsewhere(ctx, db, s.Table); err != nil {
		return nil, err
	}
	if err := RefuseForeign(ctx, db, s.Layout, s.Table); err != nil {
		return nil, err
	}
	if s.Lost {
		if err := RefuseLost(ctx, db, s.Layout, s.Table); err != nil {
			return nil, err
		}
	}
	noted, err := applied(ctx, db, VersionTable(s.Layout, s.Table))
	if err != nil {
		return nil, err
	}
	files, err := s.Files(ctx, db)
	if err != nil {
		return nil, err
	}
	list, err := Read(files)
	if err != nil {
		return nil, err
	}
	for _, m := range list {
		if !noted[m.Version] {
			return &m, nil
		}
	}
	return nil, nil //nolint:nilnil // there is none
}

// outside applies a file outside of a transaction, while another connection holds the lock: one that is not the pool's,
// which may have no second.
func (s Set) outside(ctx context.Context, pool *pgxpool.Pool, m Migration) (err error) {
	config := pool.Config()
	if config.BeforeConnect != nil {
		if err := config.BeforeConnect(ctx, config.ConnConfig); err != nil {
			return fmt.Errorf("connect to lock: %w", err)
		}
	}
	lock, err := HoldLock(ctx, config.ConnConfig)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, FreeLock(ctx, lock)) }()
	return pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		if s.Schema != "" {
			defer func() { _, _ = conn.Exec(context.WithoutCancel(ctx), "RESET search_path") }()
		}
		if err := s.enter(ctx, conn, "SET search_path TO "); err != nil {
			return err
		}
		// Another process may have been faster.
		if next, err := s.next(ctx, conn); err != nil || next == nil || next.Version != m.Version {
			return err
		}
		return s.apply(ctx, conn, m)
	})
}

// enter makes the schema, and sets the search path to it.
func (s Set) enter(ctx context.Context, db DB, set string) error {
	if s.Schema == "" {
		return nil
	}
	if err := CreateSchema(ctx, db, s.Schema); err != nil {
		return err
	}
	if _, err := db.Exec(ctx, set+pgx.Identifier{s.Schema}.Sanitize()); err != nil {
		return fmt.Errorf("set the search path to schema %q: %w", s.Schema, err)
	}
	return nil
}

func (s Set) apply(ctx context.Context, db DB, m Migration) error {
	for _, statement := range m.Up {
		if _, err := db.Exec(ctx, statement); err != nil {
			return fmt.Errorf("migration %s: %w", m.File, err)
		}
	}
	return note(ctx, db, VersionTable(s.Layout, s.Table), m.Version)
}

// CreateSchema makes a schema that is missing. It looks first: CREATE SCHEMA asks for a right on the database even when
// the schema is there.
func CreateSchema(ctx context.Context, db DB, schema string) error {
	var exists bool
	err := db.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)`, schema).Scan(&exists)
	if err == nil && !exists {
		_, err = db.Exec(ctx, `CREATE SCHEMA IF NOT EXISTS `+pgx.Identifier{schema}.Sanitize())
	}
	if err != nil {
		return fmt.Errorf("create schema %q: %w", schema, err)
	}
	return nil
}
