// Package demo is the whole road of an event on one screen: a shop that writes orders
// and events in one transaction, on a private PostgreSQL, and a relay that delivers them.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/cmd/outbox/internal/migrate"
	"github.com/packfinderz/outbox/internal/pgserver"
	"github.com/packfinderz/outbox/outboxpgx"
	"github.com/packfinderz/outbox/pgstream"
)

// Config says how the demo runs.
type Config struct {
	// Rate is how many orders are placed in a second.
	Rate int
	// For is how long; zero for ever.
	For time.Duration
	// Out is the screen.
	Out io.Writer
}

// clerks is how many work in the shop at once.
const clerks = 4

// Run runs the demo until ctx ends, then delivers the rest and compares.
func Run(ctx context.Context, config Config) (err error) {
	if config.For > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, config.For)
		defer cancel()
	}
	out := &screen{out: config.Out}
	out.say("starting a private PostgreSQL…")
	server, err := pgserver.Start(ctx, pgserver.Config{})
	if err != nil {
		return fmt.Errorf("start a private PostgreSQL: %w", err)
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	url := server.URL("postgres")
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer pool.Close()
	if err := makeTables(ctx, pool, url); err != nil {
		return err
	}
	store, err := pgstream.Open(ctx, pool, pgstream.Stream{}, pgstream.Config{})
	if err != nil {
		return err
	}
	defer store.Close()
	relay, err := outbox.NewRelay(outbox.Config{
		Store: store, Publisher: out,
		Logger: slog.New(slog.NewTextHandler(config.Out, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return err
	}
	defer relay.Stop()
	emitter, err := outboxpgx.New(pgstream.Stream{}, &outbox.EmitConfig{DefaultTopic: "orders", Nudge: relay.Nudge})
	if err != nil {
		return err
	}
	s := &shop{pool: pool, emitter: emitter}
	out.say("a shop with %d clerks places %d orders a second and works on older ones;", clerks, config.Rate)
	out.say("every tenth customer changes their mind, and the transaction is rolled back")
	out.say("look inside with: psql '%s'", url)
	out.say("Ctrl-C ends it")
	if err := relay.Start(ctx); err != nil {
		return err
	}
	if err := run(ctx, s, out, config.Rate); err != nil {
		return err
	}
	relay.Stop()
	return finish(s, out, relay)
}

// makeTables makes the stream and the shop's own table.
func makeTables(ctx context.Context, pool *pgxpool.Pool, url string) error {
	conn, err := pgx.ParseConfig(url)
	if err != nil {
		return fmt.Errorf("read the private PostgreSQL's address: %w", err)
	}
	files, err := pgstream.Migrations(pgstream.Shape{})
	if err != nil {
		return err
	}
	m, err := migrate.New(ctx, migrate.Config{Conn: conn, Layout: pgstream.LayoutName, Table: "outbox_stream", Files: files})
	if err != nil {
		return err
	}
	defer func() { _ = m.Close() }() // the work is committed by then
	if _, err := m.Up(ctx); err != nil {
		return err
	}
	if _, err := pool.Exec(ctx, ordersSQL); err != nil {
		return fmt.Errorf("make the shop's table: %w", err)
	}
	return nil
}

// run has the clerks work, and reports, until ctx ends.
func run(ctx context.Context, s *shop, out *screen, rate int) error {
	ctx, stop := context.WithCancel(ctx)
	customers := time.NewTicker(time.Second / time.Duration(rate))
	defer customers.Stop()
	reports := time.NewTicker(2 * time.Second)
	defer reports.Stop()
	failed := make(chan error, clerks)
	var working sync.WaitGroup
	defer working.Wait()
	defer stop()
	for range clerks {
		working.Go(func() {
			for {
				select {
				case <-customers.C:
					if err := s.serve(ctx); err != nil {
						failed <- err
						return
					}
				case <-ctx.Done():
					return
				}
			}
		})
	}
	for {
		select {
		case <-reports.C:
			out.say("── %s; %s", s, out)
		case err := <-failed:
			if ctx.Err() == nil { // else it was the end that cut a transaction short
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// finish delivers what is left and compares.
func finish(s *shop, out *screen, relay *outbox.Relay) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := relay.Drain(ctx); err != nil {
		return fmt.Errorf("deliver the rest: %w", err)
	}
	orders, steps, events, err := s.count(ctx)
	if err != nil {
		return err
	}
	out.say("done: %d orders in the table went %d steps; the stream has %d events; %s", orders, steps, events, out)
	if delivered, disorder := out.numbers(); steps != events || events != delivered || disorder > 0 {
		return fmt.Errorf("%d steps, %d events and %d deliveries, %d out of order: something is wrong", steps, events, delivered, disorder)
	}
	return nil
}
