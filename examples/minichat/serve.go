package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/packfinderz/outbox/destinations/natsjs"
	"github.com/packfinderz/outbox/examples/internal/database"
	"github.com/packfinderz/outbox/examples/internal/web"
)

// connect reaches what both services have: the broker and a database of their own.
func connect(ctx context.Context, o options) (natsjs.Config, *database.Database, error) {
	broker, err := brokerAt(o.nats)
	if err != nil {
		return broker, nil, err
	}
	db, err := database.Open(ctx, o.database)
	return broker, db, err
}

// serveChat runs the chat and its dispatcher while work does.
func serveChat(ctx context.Context, o options, log *slog.Logger, work func(url string) error) (err error) {
	broker, db, err := connect(ctx, o)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // nothing is left to lose
	c, err := newChat(ctx, db, broker, log)
	if err != nil {
		return err
	}
	defer func() { _ = c.broker.Close() }() // the dispatcher has ended
	if err := c.dispatcher.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.dispatcher.Stop(context.WithoutCancel(ctx))) }()
	return web.Serve(ctx, o.listen, c.routes(), work)
}

// serveBilling runs billing and its consumer while work does.
func serveBilling(ctx context.Context, o options, log *slog.Logger, work func(url string) error) error {
	broker, db, err := connect(ctx, o)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // nothing is left to lose
	b, err := newBilling(ctx, db, broker, log)
	if err != nil {
		return err
	}
	defer func() { _ = b.dead.Close() }() // the consumer has ended
	consuming, stop := context.WithCancel(ctx)
	consumed := make(chan error, 1)
	go func() { consumed <- b.consumer.Run(consuming) }()
	err = web.Serve(ctx, o.listen, b.routes(), work)
	stop()
	return errors.Join(err, <-consumed)
}
