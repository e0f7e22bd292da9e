// Package migrate makes the tables of the whole backend: the outbox's, and its own.
package migrate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/packfinderz/outbox/layouts/packfinderz"
	"github.com/packfinderz/outbox/packfinderz/migrations"
)

// Where goose remembers what was applied. The first is where outbox migrate does, too, so that either can be used.
const (
	outboxVersions  = "outbox_events_packfinderz_goose"
	backendVersions = "packfinderz_goose"
)

// Who finds another one migrating looks again every second, for five minutes.
const (
	lockPause = 1
	lockTries = 300
)

// Up applies what is missing. Several may run at once: the second waits for the first.
func Up(ctx context.Context, database string, log *slog.Logger) (err error) {
	config, err := pgx.ParseConfig(database)
	if err != nil {
		return fmt.Errorf("read the database's address: %w", err)
	}
	db := stdlib.OpenDB(*config)
	defer func() { err = errors.Join(err, db.Close()) }()
	outbox, err := packfinderz.Migrations(packfinderz.Layout())
	if err != nil {
		return fmt.Errorf("read the outbox's migrations: %w", err)
	}
	if err := up(ctx, db, outboxVersions, outbox, log); err != nil {
		return err
	}
	return up(ctx, db, backendVersions, migrations.Files(), log)
}

func up(ctx context.Context, db *sql.DB, versions string, files fs.FS, log *slog.Logger) error {
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(lockPause, lockTries))
	if err != nil {
		return fmt.Errorf("prepare the migration lock: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithTableName(versions), goose.WithSessionLocker(locker), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	results, err := provider.Up(ctx)
	for _, result := range results {
		log.Info("migrated", "file", result.Source.Path, "versions", versions)
	}
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}
