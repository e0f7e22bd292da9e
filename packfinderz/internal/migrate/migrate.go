// Package migrate makes the tables of the backend, in two sets that know nothing of each other: the outbox's, and the sample's. What
// somebody else made under the same names is left as it is.
package migrate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/packfinderz/outbox/layouts/packfinderz"
	"github.com/packfinderz/outbox/packfinderz/migrations"
)

// Where goose remembers what was applied. The first is where outbox migrate does, too, so that either can be used.
const (
	outboxVersions = "outbox_events_packfinderz_goose"
	sampleVersions = "packfinderz_goose"
)

// Who finds another one migrating looks again every second, for five minutes.
const (
	lockPause = 1
	lockTries = 300
)

// Up applies what is missing of both sets. Several may run at once: the second waits for the first.
func Up(ctx context.Context, database string, log *slog.Logger) error {
	return run(ctx, database, log, upOutbox, upSample)
}

// Outbox applies what is missing of the outbox's set, and makes no table of the sample.
func Outbox(ctx context.Context, database string, log *slog.Logger) error {
	return run(ctx, database, log, upOutbox)
}

func run(ctx context.Context, database string, log *slog.Logger, sets ...func(context.Context, *sql.DB, *slog.Logger) error) (err error) {
	config, err := pgx.ParseConfig(database)
	if err != nil {
		return fmt.Errorf("read the database's address: %w", err)
	}
	db := stdlib.OpenDB(*config)
	defer func() { err = errors.Join(err, db.Close()) }()
	for _, set := range sets {
		if err := set(ctx, db, log); err != nil {
			return err
		}
	}
	return nil
}

// upOutbox keeps tables that the backend made itself, as outbox migrate up --adopt does, and adds what they lack.
func upOutbox(ctx context.Context, db *sql.DB, log *slog.Logger) error {
	layout := packfinderz.Layout()
	files, err := packfinderz.Migrations(layout)
	if err != nil {
		return fmt.Errorf("read the outbox's migrations: %w", err)
	}
	for _, table := range []string{layout.Table, layout.DeadLetter.Table} {
		if err := elsewhere(ctx, db, table); err != nil {
			return err
		}
	}
	foreign, err := foreign(ctx, db, outboxVersions, map[int64][]string{1: {layout.Table}, 2: {layout.DeadLetter.Table}})
	if err != nil {
		return err
	}
	for _, version := range slices.Sorted(maps.Keys(foreign)) {
		log.Info("kept as it is: it was there already", "table", foreign[version][0])
	}
	if err := up(ctx, db, outboxVersions, files, log, slices.Collect(maps.Keys(foreign))...); err != nil {
		return err
	}
	return verify(ctx, db)
}

// verify refuses tables that the publisher could not work on: a release should fail before it is deployed.
func verify(ctx context.Context, db *sql.DB) (err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	err = conn.Raw(func(driver any) error {
		return packfinderz.Layout().VerifyEmit(ctx, driver.(*stdlib.Conn).Conn()) //nolint:forcetypeassert // run opened it
	})
	if err != nil {
		return fmt.Errorf("all migrations of the outbox are applied, but: %w", err)
	}
	return nil
}

// upSample makes the sample's tables all together or, where a name is taken, none: half a sample would look as if it worked.
func upSample(ctx context.Context, db *sql.DB, log *slog.Logger) error {
	foreign, err := foreign(ctx, db, sampleVersions, sampleNames())
	if err != nil {
		return err
	}
	if len(foreign) > 0 {
		log.Warn("the sample's tables are left out, and the api and the worker of the sample cannot run on this database: "+
			"these names are taken by what the sample did not make, which is left as it is",
			"taken", slices.Concat(slices.Collect(maps.Values(foreign))...))
		return nil
	}
	return up(ctx, db, sampleVersions, migrations.Sample(), log)
}

func up(ctx context.Context, db *sql.DB, versions string, files fs.FS, log *slog.Logger, without ...int64) error {
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(lockPause, lockTries))
	if err != nil {
		return fmt.Errorf("prepare the migration lock: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithTableName(versions), goose.WithSessionLocker(locker),
		goose.WithDisableGlobalRegistry(true), goose.WithExcludeVersions(without))
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
