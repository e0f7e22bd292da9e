// Package demo is the whole road of an event on one screen: a shop that writes orders and
// events in one transaction, on a private PostgreSQL; a relay; a NATS server in the same
// process; and a consumer that handles each event once. Some events are poison, and now and
// then the broker is away.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume/inbox/pginbox"
	"github.com/packfinderz/outbox/destinations/natsjs"
	"github.com/packfinderz/outbox/internal/testing/pgserver"
	"github.com/packfinderz/outbox/outboxpgx"
	"github.com/packfinderz/outbox/pgstream"
)

// Config says how the demo runs.
type Config struct {
	// Rate is how many orders are placed in a second.
	Rate int
	// For is how long; zero for ever.
	For time.Duration
	// OutageEvery is the time between two outages of the broker; zero for none. Each takes
	// OutageFor.
	OutageEvery, OutageFor time.Duration
	// Console is where the console listens; another port is taken if it cannot have this one.
	Console string
	// Out is the screen.
	Out io.Writer
}

const (
	// clerks is how many work in the shop at once.
	clerks = 4
	// reportEvery is how often the numbers are shown.
	reportEvery = 5 * time.Second
	// patience is how long the end may take.
	patience = 30 * time.Second
)

// demo is what runs.
type demo struct {
	config  Config
	url     string
	console string // where it is
	pool    *pgxpool.Pool
	broker  *broker
	screen  *screen
	shop    *shop
	billing *billing
	relay   *outbox.Relay
}

// Run runs the demo until ctx ends, then delivers the rest and compares.
func Run(ctx context.Context, config Config) (err error) {
	if config.For > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, config.For)
		defer cancel()
	}
	d := &demo{config: config, screen: &screen{out: config.Out}}
	d.screen.say("starting a private PostgreSQL and a NATS server…")
	server, err := pgserver.Start(ctx, pgserver.Config{})
	if err != nil {
		return fmt.Errorf("start a private PostgreSQL: %w", err)
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	d.url = server.URL("postgres")
	if d.pool, err = pgxpool.New(ctx, d.url); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer d.pool.Close()
	if err := makeTables(ctx, d.pool); err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "outbox-demo-")
	if err != nil {
		return fmt.Errorf("make a folder for the NATS server: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	d.broker = &broker{folder: folder}
	if err := d.broker.start(); err != nil {
		return err
	}
	defer func() { d.broker.stop() }()
	return d.run(ctx)
}

// run runs what stands on the servers.
func (d *demo) run(ctx context.Context) (err error) {
	store, err := pgstream.Open(ctx, d.pool, pgstream.Stream{}, pgstream.Config{})
	if err != nil {
		return err
	}
	defer store.Close()
	publisher, err := natsjs.New(d.broker.config())
	if err != nil {
		return err
	}
	defer func() { _ = publisher.Close() }() // the relay has stopped by then
	quiet := slog.New(slog.DiscardHandler)   // the screen tells it better
	d.relay, err = outbox.NewRelay(outbox.RelayConfig{
		Store: store, Publisher: &moods{Publisher: publisher, tries: make(map[uuid.UUID]int)}, Hooks: []any{d.screen}, Logger: quiet,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.relay.Stop(context.WithoutCancel(ctx))) }()
	emitter, err := outboxpgx.New(pgstream.Stream{}, outbox.EmitConfig{DefaultTopic: topic, Nudge: d.relay.Nudge})
	if err != nil {
		return err
	}
	d.shop = &shop{pool: d.pool, emitter: emitter}
	inbox, err := pginbox.New(pginbox.Config{})
	if err != nil {
		return err
	}
	d.billing = &billing{pool: d.pool, inbox: inbox}
	consumer, err := d.billing.consumer(d.broker.config(), quiet)
	if err != nil {
		return err
	}
	consuming, stopConsuming := context.WithCancel(context.WithoutCancel(ctx))
	consumed := make(chan error, 1)
	go func() { consumed <- consumer.Run(consuming) }()
	defer func() {
		stopConsuming()
		<-consumed
	}()
	closeConsole, err := d.openConsole(quiet)
	if err != nil {
		return err
	}
	defer closeConsole()
	d.introduce()
	if err := d.relay.Start(ctx); err != nil {
		return err
	}
	if err := d.trade(ctx, consumed); err != nil {
		return err
	}
	if err := d.relay.Stop(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	return d.finish()
}

func (d *demo) introduce() {
	d.screen.say("a shop with %d clerks places %d orders a second and works on older ones, each step in one", clerks, d.config.Rate)
	d.screen.say("transaction with its event; every tenth customer changes their mind, and it is rolled back.")
	d.screen.say("A relay publishes the events to NATS; billing consumes them and enters each in its ledger once.")
	d.screen.say("Some events fail and are tried again; some are dead until you retry them in the console:")
	d.screen.say("")
	d.screen.say("  %s", d.console)
	d.screen.say("")
	d.screen.say("or from another terminal: make build && bin/outbox list --state dead --from '%s'", d.url)
	d.screen.say("Ctrl-C ends it.")
	d.screen.say("")
}

// trade has the clerks work, reports, and takes the broker away now and then, until ctx ends.
func (d *demo) trade(ctx context.Context, consumed <-chan error) error {
	ctx, stop := context.WithCancel(ctx)
	failed := make(chan error, clerks+1)
	var working sync.WaitGroup
	defer working.Wait()
	defer stop()
	customers := time.NewTicker(time.Second / time.Duration(d.config.Rate))
	defer customers.Stop()
	for range clerks {
		working.Go(func() { failed <- d.clerk(ctx, customers.C) })
	}
	if d.config.OutageEvery > 0 {
		working.Go(func() { failed <- d.outages(ctx) })
	}
	reports := time.NewTicker(reportEvery)
	defer reports.Stop()
	for {
		select {
		case <-reports.C:
			d.screen.say("── %s; %s", d.shop, d.screen)
		case err := <-failed:
			if ctx.Err() == nil { // else it was the end that cut a transaction short
				return err
			}
		case err := <-consumed:
			return fmt.Errorf("the consumer ended: %w", err)
		case <-ctx.Done():
			return nil
		}
	}
}

// clerk serves a customer at a time.
func (d *demo) clerk(ctx context.Context, customers <-chan time.Time) error {
	for {
		select {
		case <-customers:
			if err := d.shop.serve(ctx); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// outages takes the broker away, again and again, and always brings it back.
func (d *demo) outages(ctx context.Context) error {
	for {
		select {
		case <-time.After(d.config.OutageEvery):
		case <-ctx.Done():
			return nil
		}
		d.screen.say("outage     the broker goes away for %s", d.config.OutageFor)
		d.broker.stop()
		select {
		case <-time.After(d.config.OutageFor):
		case <-ctx.Done():
		}
		if err := d.broker.start(); err != nil {
			return err
		}
	}
}

// finish delivers what is left and compares.
func (d *demo) finish() error {
	d.screen.say("delivering the rest…")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := d.relay.Drain(ctx); err != nil {
		return fmt.Errorf("deliver the rest: %w", err)
	}
	books, err := d.shop.count(ctx)
	if err != nil {
		return err
	}
	for {
		entries, events, late, err := d.billing.audit(ctx)
		if err != nil {
			return err
		}
		if events < books.events-books.dead {
			select {
			case <-time.After(100 * time.Millisecond):
				continue
			case <-ctx.Done():
			}
		}
		d.screen.say("done: %d orders went %d steps; the stream has %d events, %d of them dead; billing's ledger has %d entries of %d events",
			books.orders, books.steps, books.events, books.dead, entries, events)
		if books.steps != books.events || entries != events || events != books.events-books.dead {
			return errors.New("these do not agree: something is wrong")
		}
		d.screen.say("Nothing is lost, and nothing was handled twice.")
		if late > 0 { // what was on its way to billing when the broker went comes again later
			d.screen.say("%d steps came to billing after a later one of their order, because of an outage.", late)
		} else {
			d.screen.say("Each order's steps came to billing in order.")
		}
		return nil
	}
}
