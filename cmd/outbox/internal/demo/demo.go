// Package demo is the whole road of an event on one screen: a shop that writes orders
// and events in one transaction, on a private PostgreSQL, and a relay that delivers them.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/cmd/outbox/internal/migrate"
	"github.com/packfinderz/outbox/internal/pgserver"
	"github.com/packfinderz/outbox/layouts/modkit"
	"github.com/packfinderz/outbox/outboxpgx"
	"github.com/packfinderz/outbox/pgstore"
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

// shop is a running demo.
type shop struct {
	Config
	pool      *pgxpool.Pool
	emitter   *outboxpgx.Emitter
	relay     *outbox.Relay
	placed    atomic.Int64
	cancelled atomic.Int64
	delivered atomic.Int64
}

// Run runs the demo until ctx ends.
func Run(ctx context.Context, config Config) (err error) {
	if config.For > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, config.For)
		defer cancel()
	}
	say(config.Out, "starting a private PostgreSQL…")
	server, err := pgserver.Start(ctx, pgserver.Config{})
	if err != nil {
		return fmt.Errorf("start a private PostgreSQL: %w", err)
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	url := server.URL("postgres")
	s := &shop{Config: config}
	if s.pool, err = pgxpool.New(ctx, url); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer s.pool.Close()
	if err := s.prepare(ctx, url); err != nil {
		return err
	}
	say(config.Out, "a shop places %d orders a second; every tenth customer changes their mind and the transaction is rolled back", config.Rate)
	say(config.Out, "look inside with: psql '%s'", url)
	say(config.Out, "Ctrl-C ends it")
	return s.run(ctx)
}

// prepare makes the shop's table and the outbox table, and the relay.
func (s *shop) prepare(ctx context.Context, url string) error {
	conn, err := pgx.ParseConfig(url)
	if err != nil {
		return fmt.Errorf("read the private PostgreSQL's address: %w", err)
	}
	layout := modkit.Layout()
	files, err := modkit.Migrations(layout)
	if err != nil {
		return err
	}
	m, err := migrate.New(ctx, migrate.Config{Conn: conn, Layout: layout.Name, Table: layout.Table, Files: files})
	if err != nil {
		return err
	}
	defer func() { _ = m.Close() }() // the work is committed by then
	if _, err := m.Up(ctx); err != nil {
		return err
	}
	if _, err := s.pool.Exec(ctx, `CREATE TABLE orders (id bigserial PRIMARY KEY, total int NOT NULL)`); err != nil {
		return fmt.Errorf("make the shop's table: %w", err)
	}
	store, err := pgstore.New(s.pool, layout, pgstore.Config{})
	if err != nil {
		return err
	}
	s.relay, err = outbox.NewRelay(outbox.Config{
		Store: store, Publisher: s, Logger: slog.New(slog.NewTextHandler(s.Out, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return err
	}
	s.emitter, err = outboxpgx.New(layout, &outbox.EmitConfig{
		DefaultNamespace: "shop", DefaultTopic: "orders", Nudge: s.relay.Nudge,
	})
	return err
}

// run places orders, relays and reports until ctx ends, then delivers the rest.
func (s *shop) run(ctx context.Context) error {
	if err := s.relay.Start(ctx); err != nil {
		return err
	}
	orders := time.NewTicker(time.Second / time.Duration(s.Rate))
	defer orders.Stop()
	reports := time.NewTicker(2 * time.Second)
	defer reports.Stop()
	for {
		select {
		case <-orders.C:
			if err := s.placeOrder(ctx); err != nil && ctx.Err() == nil {
				return err
			}
		case <-reports.C:
			say(s.Out, "── %d orders committed, %d rolled back, %d events delivered", s.placed.Load(), s.cancelled.Load(), s.delivered.Load())
		case <-ctx.Done():
			return s.finish()
		}
	}
}

// finish delivers what is left and compares.
func (s *shop) finish() error {
	s.relay.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.relay.Drain(ctx); err != nil {
		return fmt.Errorf("deliver the rest: %w", err)
	}
	var orders, events int64
	err := s.pool.QueryRow(ctx, `SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM modkit_outbox_events WHERE status = 'delivered')`).
		Scan(&orders, &events)
	if err != nil {
		return fmt.Errorf("count orders and events: %w", err)
	}
	say(s.Out, "done: %d orders in the table, %d rolled back, %d events delivered", orders, s.cancelled.Load(), events)
	if orders != events {
		return fmt.Errorf("%d orders and %d delivered events: they should be equal", orders, events)
	}
	return nil
}

// errChangedMind is a customer's.
var errChangedMind = errors.New("the customer changed their mind")

// placeOrder writes an order and its event in one transaction. Every tenth is rolled back,
// and leaves neither.
func (s *shop) placeOrder(ctx context.Context) error {
	err := s.emitter.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		var id int64
		total := 500 + int(s.placed.Load()*37%9500)
		if err := tx.QueryRow(ctx, `INSERT INTO orders (total) VALUES ($1) RETURNING id`, total).Scan(&id); err != nil {
			return fmt.Errorf("insert an order: %w", err)
		}
		if _, err := s.emitter.Emit(ctx, tx, outbox.Event{
			DedupeKey: fmt.Sprintf("order-%d-placed", id),
			Payload:   fmt.Appendf(nil, `{"order": %d, "total": %d}`, id, total),
		}); err != nil {
			return err
		}
		if id%10 == 0 {
			return errChangedMind
		}
		return nil
	})
	switch {
	case errors.Is(err, errChangedMind):
		s.cancelled.Add(1)
		return nil
	case err != nil:
		return err
	}
	s.placed.Add(1)
	return nil
}

// Publish shows messages on the screen: it is the demo's broker.
func (s *shop) Publish(_ context.Context, messages []outbox.Message) []error {
	for i := range messages {
		m := &messages[i]
		say(s.Out, "delivered %s  %s/%s  %s  %s after its transaction began", m.ID, m.Namespace, m.Topic, m.Payload,
			time.Since(m.CreatedAt).Round(100*time.Microsecond))
		s.delivered.Add(1)
	}
	return make([]error, len(messages))
}

// say prints a line. A screen that is gone is no reason to stop.
func say(out io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(out, format+"\n", args...)
}
