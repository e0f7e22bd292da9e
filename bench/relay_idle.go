package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox/internal/testing/pgserver"
	"github.com/packfinderz/outbox/layouts/shipped"
	"github.com/packfinderz/outbox/pgstream"
)

const (
	idleSettles = 4 * time.Second // a relay's pauses have grown to the longest
	idleFor     = 10 * time.Second
	idleCeiling = 2.0 // statements a second
)

// benchIdle counts the statements of relays with nothing to do, on a server of their own
// that counts every statement, BEGIN and ROLLBACK too.
func benchIdle(ctx context.Context, b *bench, outbox *program) (err error) {
	server, err := pgserver.Start(ctx, pgserver.Config{Settings: map[string]string{
		"shared_preload_libraries": "pg_stat_statements", "pg_stat_statements.track_utility": "on",
	}})
	if err != nil {
		return fmt.Errorf("start a PostgreSQL with pg_stat_statements, of its contrib package: %w", err)
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	counter, err := pgx.Connect(ctx, server.URL("postgres"))
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = counter.Close(ctx) }() // it only reads
	if _, err := counter.Exec(ctx, "CREATE EXTENSION pg_stat_statements"); err != nil {
		return fmt.Errorf("count statements: %w", err)
	}
	idle := &bench{server: server}
	var names []string
	for _, table := range idleTables(idle) {
		url, err := table.make(ctx)
		if err != nil {
			return err
		}
		stop, err := startRelay(ctx, outbox, table.layout, url)
		if err != nil {
			return err
		}
		defer stop()
		names = append(names, table.layout)
	}
	time.Sleep(idleSettles)
	if _, err := counter.Exec(ctx, "SELECT pg_stat_statements_reset()"); err != nil {
		return fmt.Errorf("count statements: %w", err)
	}
	time.Sleep(idleFor)
	for i, name := range names {
		var calls float64
		err := counter.QueryRow(ctx, `SELECT coalesce(sum(calls), 0)::float8 FROM pg_stat_statements s
			JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = $1`, fmt.Sprintf("bench_%d", i+1)).Scan(&calls)
		if err != nil {
			return fmt.Errorf("count statements: %w", err)
		}
		perSecond := calls / idleFor.Seconds()
		b.promise(name+": idle", perSecond > 0 && perSecond <= idleCeiling,
			"%.1f statements/s (at most %.0f)", perSecond, idleCeiling)
	}
	return nil
}

// idleTable is an outbox with one event in it.
type idleTable struct {
	layout string
	make   func(ctx context.Context) (url string, err error)
}

// idleTables are the layouts' and the stream.
func idleTables(b *bench) (list []idleTable) {
	for _, shipped := range shipped.All() {
		list = append(list, idleTable{shipped.Layout.Name, func(ctx context.Context) (string, error) { return b.loaded(ctx, shipped, 1) }})
	}
	return append(list, idleTable{pgstream.LayoutName, func(ctx context.Context) (string, error) {
		log, err := b.stream(ctx)
		if err != nil {
			return "", err
		}
		defer log.pool.Close()
		return log.url, log.load(ctx, 1)
	}})
}

// startRelay starts a relay that runs until stop is called.
func startRelay(ctx context.Context, outbox *program, layout, url string) (stop func(), err error) {
	command, err := runningRelay(ctx, outbox, layout, url)
	if err != nil {
		return nil, err
	}
	return func() {
		_ = command.Process.Signal(os.Interrupt) // it may have ended by itself
		_ = command.Wait()                       // how it ended is not measured
	}, nil
}

func runningRelay(ctx context.Context, outbox *program, layout, url string) (*exec.Cmd, error) {
	command := outbox.command(ctx, "relay", layout, url)
	command.Stderr = io.Discard
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("outbox relay: %w", err)
	}
	return command, nil
}
