// Command bench measures the outbox beside the same work done by other means, on a
// private PostgreSQL with fsync on. It prints ratios, because a machine's speed is its
// own, and exits with 1 when a promised ratio is missed.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/internal/testing/pgserver"
)

// benches are the measurements, by the name to call them by.
var benches = []struct {
	name string
	run  func(ctx context.Context, b *bench) error
}{
	{"emit", benchEmit},
	{"relay", benchRelay},
	{"stream", benchStream},
	{"pooler", benchPooler},
	{"destinations", benchDestinations},
	{"inbox", benchInbox},
	{"operations", benchOperations},
}

func main() {
	pgserver.RunKeeperIfAsked()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	missed, err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	if missed > 0 {
		fmt.Printf("\n%d promises missed\n", missed)
		os.Exit(1)
	}
}

func run(ctx context.Context, names []string) (missed int, err error) {
	server, err := pgserver.Start(ctx, pgserver.Config{Settings: map[string]string{
		// What a careful operator runs: every commit is on disk.
		"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on",
		"shared_buffers": "256MB", "max_wal_size": "4GB", "max_connections": "100",
	}})
	if err != nil {
		return 0, fmt.Errorf("start a private PostgreSQL: %w", err)
	}
	defer func() {
		if stopErr := server.Stop(); err == nil {
			err = stopErr
		}
	}()
	b := &bench{server: server}
	ran := false
	for _, candidate := range benches {
		if len(names) > 0 && !slices.Contains(names, candidate.name) {
			continue
		}
		ran = true
		fmt.Printf("# %s\n", candidate.name)
		if err := candidate.run(ctx, b); err != nil {
			return b.missed, fmt.Errorf("%s: %w", candidate.name, err)
		}
	}
	if !ran {
		return 0, fmt.Errorf("there is no bench called %s", strings.Join(names, " or "))
	}
	return b.missed, nil
}

// bench is what the measurements share.
type bench struct {
	server *pgserver.Server
	made   int
	missed int
}

// database makes a fresh database, by its URL.
func (b *bench) database(ctx context.Context) (string, error) {
	b.made++
	name := fmt.Sprintf("bench_%d", b.made)
	conn, err := pgx.Connect(ctx, b.server.URL("postgres"))
	if err != nil {
		return "", fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }() // the database is made by then
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		return "", fmt.Errorf("create a database: %w", err)
	}
	return b.server.TCPURL(name), nil
}

// pool is database with a pool on it.
func (b *bench) pool(ctx context.Context) (*pgxpool.Pool, error) {
	url, err := b.database(ctx)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return pool, nil
}

// promise prints a ratio and whether it keeps the promise.
func (b *bench) promise(name string, kept bool, format string, args ...any) {
	verdict := "kept"
	if !kept {
		verdict = "MISSED"
		b.missed++
	}
	fmt.Printf("%-44s %s   %s\n", name, fmt.Sprintf(format, args...), verdict)
}
