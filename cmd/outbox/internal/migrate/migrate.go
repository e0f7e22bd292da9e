// Package migrate runs a layout's goose migrations. Every outbox table has its own version table, so that it never
// meets the application's migrations.
package migrate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/packfinderz/outbox/internal/migrations"
	"github.com/packfinderz/outbox/layouts"
)

// ErrTableExists is returned by Up if the table exists and was not created by these migrations. Adopt keeps it.
var ErrTableExists = migrations.ErrTableExists

// ErrNoTable is returned by Up with Adopt if there is no table to adopt.
var ErrNoTable = errors.New("there is no such table to adopt")

// ErrElsewhere is returned by Up if the search path finds the table in another schema than the one the migrations
// would create it in.
var ErrElsewhere = migrations.ErrElsewhere

// ErrNotEmpty is returned by Down if the table holds events.
var ErrNotEmpty = errors.New("the table holds events")

// Config says what to migrate.
type Config struct {
	// Conn is the database.
	Conn *pgx.ConnConfig
	// Schema is created if missing; empty for the first of the search path.
	Schema string
	// Layout is the layout's name.
	Layout string
	// Table is the outbox table's name.
	Table string
	// Beside are other tables that may hold events.
	Beside []string
	// Files are the layout's migrations; version 1 creates the table.
	Files fs.FS
	// Adopt keeps tables that others created, and applies the rest.
	Adopt bool
	// Queue is the layout of a queue table, which says what fits. It is nil for a stream and the audit log, which
	// are not adopted.
	Queue *layouts.Layout
	// Force lets Down drop a table that holds events.
	Force bool
}

// Migrator migrates one outbox table.
type Migrator struct {
	config   Config
	versions string
	db       *sql.DB
	provider *goose.Provider
}

// New opens the database and reads the migrations. Nothing is written.
func New(ctx context.Context, config Config) (*Migrator, error) {
	conn := config.Conn.Copy()
	if config.Schema != "" {
		// The files name no schema: they create their objects in the first schema of the search path.
		conn.RuntimeParams["search_path"] = pgx.Identifier{config.Schema}.Sanitize()
	}
	m := &Migrator{config: config, versions: migrations.VersionTable(config.Layout, config.Table), db: stdlib.OpenDB(*conn)}
	if err := m.db.PingContext(ctx); err != nil {
		if config.Schema != "" && strings.Contains(err.Error(), "unsupported startup parameter") {
			err = fmt.Errorf("a pooler does not pass the schema on; migrate over a direct connection: %w", err)
		}
		return nil, errors.Join(fmt.Errorf("connect: %w", err), m.db.Close())
	}
	if err := m.prepare(); err != nil {
		return nil, errors.Join(err, m.db.Close())
	}
	return m, nil
}

// prepare creates the provider of all migrations except for some.
func (m *Migrator) prepare(without ...int64) (err error) {
	m.provider, err = goose.NewProvider(goose.DialectPostgres, m.db, m.config.Files,
		goose.WithTableName(m.versions),
		goose.WithSessionLocker(&locker{config: m.config.Conn}),
		goose.WithDisableGlobalRegistry(true),
		goose.WithExcludeVersions(without),
		// A migration whose table was in the way, or is lost and created again, comes after later ones.
		goose.WithAllowOutofOrder(true),
	)
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	return nil
}

// Close closes the database.
func (m *Migrator) Close() error {
	if err := m.db.Close(); err != nil {
		return fmt.Errorf("close the database: %w", err)
	}
	return nil
}

// Up applies what is missing.
func (m *Migrator) Up(ctx context.Context) ([]Step, error) {
	err := m.withConn(ctx, func(conn *pgx.Conn) error {
		if err := m.createSchema(ctx, conn); err != nil {
			return err
		}
		if err := migrations.RefuseElsewhere(ctx, conn, m.config.Table); err != nil || m.config.Queue != nil {
			return err
		}
		// A stream, an inbox or an audit log is not adopted.
		if err := migrations.RefuseForeign(ctx, conn, m.config.Layout, m.config.Table); err != nil {
			return err
		}
		return migrations.RefuseLost(ctx, conn, m.config.Layout, m.config.Table)
	})
	if err == nil && m.config.Queue != nil {
		err = m.survey(ctx)
	}
	if err != nil {
		return nil, err
	}
	results, err := m.provider.Up(ctx)
	return steps(results, true), unwrapPartial(err)
}

// Down undoes everything that Up applied. A table that was adopted stays.
func (m *Migrator) Down(ctx context.Context) ([]Step, error) {
	if !m.config.Force {
		if err := m.refuseEvents(ctx); err != nil {
			return nil, err
		}
	}
	if started, err := m.exists(ctx, m.versions); err != nil || !started {
		return nil, err
	}
	results, err := m.provider.DownTo(ctx, 0)
	if err == nil {
		// Nothing is applied any more, so nothing needs to be recorded.
		_, err = m.db.ExecContext(ctx, `DROP TABLE IF EXISTS `+m.versions)
	}
	return steps(results, false), unwrapPartial(err)
}

// createSchema holds the lock: two processes that create one schema at the same time would fail.
func (m *Migrator) createSchema(ctx context.Context, conn *pgx.Conn) error {
	if m.config.Schema == "" {
		return nil
	}
	return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if err := migrations.Lock(ctx, tx); err != nil {
			return err
		}
		return migrations.CreateSchema(ctx, tx, m.config.Schema)
	})
}

// exists looks for a table only where the migrations would create it.
func (m *Migrator) exists(ctx context.Context, table string) (exists bool, err error) {
	err = m.db.QueryRowContext(ctx,
		`SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = current_schema() AND tablename = $1)`, table).Scan(&exists)
	if err != nil {
		return false, fmt.Errorf("look for table %q: %w", table, err)
	}
	return exists, nil
}

// refuseEvents keeps Down from deleting events: undelivered ones would be lost for good.
func (m *Migrator) refuseEvents(ctx context.Context) error {
	list, err := m.list(ctx)
	if err != nil {
		return err
	}
	if len(list) == 0 || !list[0].Applied {
		return nil
	}
	for _, table := range append([]string{m.config.Table}, m.config.Beside...) {
		exists, err := m.exists(ctx, table)
		if err != nil {
			return err
		}
		if !exists {
			continue
		}
		var occupied bool
		if err := m.db.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM `+pgx.Identifier{table}.Sanitize()+`)`).Scan(&occupied); err != nil {
			return fmt.Errorf("look for events in table %q: %w", table, err)
		}
		if occupied {
			return ErrNotEmpty
		}
	}
	return nil
}

func steps(results []*goose.MigrationResult, applied bool) []Step {
	list := make([]Step, 0, len(results))
	for _, result := range results {
		if result.Error == nil {
			list = append(list, Step{Version: result.Source.Version, Name: result.Source.Path, Applied: applied})
		}
	}
	return list
}

// unwrapPartial names the migration that failed instead of the whole list.
func unwrapPartial(err error) error {
	var partial *goose.PartialError
	if errors.As(err, &partial) {
		return fmt.Errorf("migration %s: %w", partial.Failed.Source.Path, partial.Err)
	}
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}
