package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/packfinderz/outbox/examples/internal/database"
	"github.com/packfinderz/outbox/examples/internal/web"
)

// serveChat runs the chat and its dispatcher while work does.
func serveChat(ctx context.Context, o options, log *slog.Logger, work func(url string) error) error {
	broker, err := brokerAt(o.nats)
	if err != nil {
		return err
	}
	db, err := database.Open(ctx, o.database)
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
	defer c.dispatcher.Stop()
	return web.Serve(ctx, o.listen, c.routes(), work)
}

// serveBilling runs billing and its consumer while work does.
func serveBilling(ctx context.Context, o options, log *slog.Logger, work func(url string) error) error {
	broker, err := brokerAt(o.nats)
	if err != nil {
		return err
	}
	db, err := database.Open(ctx, o.database)
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
