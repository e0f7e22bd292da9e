// Package migrate creates the tables of the backend, in two independent sets: the outbox's and the sample's. It keeps
// what others created under the same names.
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
	"github.com/packfinderz/outbox/layouts/survey"
	"github.com/packfinderz/outbox/packfinderz/internal/database"
	"github.com/packfinderz/outbox/packfinderz/internal/env"
	"github.com/packfinderz/outbox/packfinderz/migrations"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/registry"
	"github.com/packfinderz/outbox/pgstore"
)

// outboxVersions is the table in which goose records the outbox's set. outbox migrate uses the same one, so that either
// can be used.
const outboxVersions = "outbox_events_packfinderz_goose"

// A process that finds another one migrating tries again every second, for five minutes.
const (
	lockPause = 1
	lockTries = 300
)

// Up applies the missing migrations of both sets. Concurrent calls wait for each other.
func Up(ctx context.Context, address string, log *slog.Logger) error {
	return run(ctx, address, log, upOutbox, upSample)
}

// Outbox applies the missing migrations of the outbox's set only.
func Outbox(ctx context.Context, address string, log *slog.Logger) error {
	return run(ctx, address, log, upOutbox)
}

// session is the database to migrate: db for goose, conn for the checks.
type session struct {
	db   *sql.DB
	conn *pgx.Conn
	log  *slog.Logger
}

// set checks a database, and returns the work to do.
type set func(ctx context.Context, s session) (apply func() error, err error)

// run checks all sets before it applies the first, so that it begins nothing that it cannot finish.
func run(ctx context.Context, address string, log *slog.Logger, sets ...set) (err error) {
	config, err := pgx.ParseConfig(address)
	if err != nil {
		return fmt.Errorf("read the database's address: %w", err)
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	db := stdlib.OpenDB(*config)
	defer func() { err = errors.Join(err, db.Close()) }()
	var steps []func() error
	for _, set := range sets {
		apply, err := set(ctx, session{db, conn, log})
		switch {
		case errors.Is(err, survey.ErrConflict), errors.Is(err, ErrElsewhere):
			return fmt.Errorf("%w: %w", env.ErrUsage, err)
		case err != nil:
			return err
		}
		steps = append(steps, apply)
	}
	for _, apply := range steps {
		if err := apply(); err != nil {
			return err
		}
	}
	return nil
}

// upOutbox keeps tables that the backend created itself, and adds what they lack, like outbox migrate up --adopt.
func upOutbox(ctx context.Context, s session) (apply func() error, err error) {
	layout := packfinderz.Layout()
	files, err := packfinderz.Migrations(layout)
	if err != nil {
		return nil, fmt.Errorf("read the outbox's migrations: %w", err)
	}
	for _, table := range []string{layout.Table, layout.DeadLetter.Table} {
		if err := elsewhere(ctx, s.conn, table); err != nil {
			return nil, err
		}
	}
	plan, err := survey.Set{Files: files, Versions: outboxVersions}.NewPlan(ctx, s.conn, layout)
	if err != nil {
		return nil, err
	}
	return func() error {
		for _, kept := range plan.Kept {
			s.log.Info("kept as it is: it was there already", "table", kept.Name)
		}
		for _, statement := range plan.Types {
			if _, err := s.conn.Exec(ctx, statement); err != nil {
				return fmt.Errorf("make the outbox's types: %w", err)
			}
		}
		if err := s.up(ctx, outboxVersions, files, plan.Versions()...); err != nil {
			return err
		}
		own := registry.Layout()
		added, err := AddValues(ctx, s.conn, own)
		if len(added) > 0 {
			s.log.Info("added to the enum types", "values", added)
		}
		if err != nil {
			return err
		}
		// A release should fail before it is deployed, if the publisher could not work.
		if err := pgstore.VerifyEmit(ctx, s.conn, own); err != nil {
			return fmt.Errorf("%w: all migrations of the outbox are applied, but: %w", env.ErrUsage, err)
		}
		return nil
	}, nil
}

// upSample creates all of the sample's tables or, if a name is taken, none: half a sample would only seem to work.
func upSample(ctx context.Context, s session) (apply func() error, err error) {
	taken, err := database.TakenFromSample(ctx, s.conn)
	if err != nil {
		return nil, err
	}
	return func() error {
		if len(taken) > 0 {
			s.log.Warn("the sample's tables are left out, and the api and the worker of the sample cannot run on this database: "+
				"these names are taken by what the sample did not make, which is left as it is", "taken", taken)
			return nil
		}
		return s.up(ctx, migrations.SampleVersions, migrations.Sample())
	}, nil
}

func (s session) up(ctx context.Context, versions string, files fs.FS, without ...int64) error {
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(lockPause, lockTries))
	if err != nil {
		return fmt.Errorf("prepare the migration lock: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, s.db, files, goose.WithTableName(versions), goose.WithSessionLocker(locker),
		goose.WithDisableGlobalRegistry(true), goose.WithExcludeVersions(without),
		// A migration whose table was in the way, or is lost and to be made again, comes after later ones.
		goose.WithAllowOutofOrder(true))
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	results, err := provider.Up(ctx)
	for _, result := range results {
		s.log.Info("migrated", "file", result.Source.Path, "versions", versions)
	}
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}
