// Quickstart is the smallest whole outbox: an order and its event in one transaction, a relay
// in the same process, and a function that handles the event.
//
// It runs on a private PostgreSQL, or on the database of --database.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/handlers"
	"github.com/packfinderz/outbox/examples/internal/database"
	"github.com/packfinderz/outbox/outboxpgx"
	"github.com/packfinderz/outbox/pgstream"
)

func main() {
	database.RunKeeperIfAsked()
	url := flag.String("database", "", "`URL` of a PostgreSQL database (default: a private one)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *url, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

// order is what the event tells.
type order struct {
	ID    int64 `json:"id"`
	Total int64 `json:"total"` // in cents
}

func run(ctx context.Context, url string, out io.Writer) (err error) {
	db, err := database.Open(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // nothing is left to lose

	// The tables: the outbox's own, and the shop's.
	if err := pgstream.Migrate(ctx, db.Pool); err != nil {
		return err
	}
	if _, err := db.Exec(ctx, `CREATE TABLE IF NOT EXISTS orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, total bigint NOT NULL)`); err != nil {
		return fmt.Errorf("make the shop's table: %w", err)
	}

	// The other end: a function for each type of event. With a broker, the relay would publish to a
	// package of destinations instead, and the function would be in a consumer.
	handled := make(chan order)
	set, err := handlers.New(handlers.Config{})
	if err != nil {
		return err
	}
	err = handlers.Handle(set, "order_placed", "tell", func(ctx context.Context, o order, _ outbox.Message) error {
		select {
		case handled <- o:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if err != nil {
		return err
	}

	// The relay between the two.
	store, err := pgstream.Open(ctx, db.Pool, pgstream.Stream{}, pgstream.Config{})
	if err != nil {
		return err
	}
	defer store.Close()
	relay, err := outbox.NewRelay(outbox.RelayConfig{Store: store, Publisher: set})
	if err != nil {
		return err
	}
	if err := relay.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, relay.Stop(context.WithoutCancel(ctx))) }()

	// The business transaction: the order and its event, or neither.
	emitter, err := outboxpgx.New(pgstream.Stream{}, outbox.EmitConfig{DefaultTopic: "orders", Nudge: relay.Nudge})
	if err != nil {
		return err
	}
	placed, err := place(ctx, db, emitter, 1999)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "order %d and its event are committed\n", placed.ID)

	select {
	case o := <-handled:
		_, _ = fmt.Fprintf(out, "the event was handled: order %d, %d.%02d\n", o.ID, o.Total/100, o.Total%100)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
