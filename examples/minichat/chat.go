package main

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/natsjs"
	"github.com/packfinderz/outbox/examples/internal/database"
	"github.com/packfinderz/outbox/layouts/modkit"
)

//go:embed migrations
var files embed.FS

// migrate makes the tables of one side.
func migrate(ctx context.Context, db *database.Database, side string) error {
	own, err := fs.Sub(files, "migrations/"+side)
	if err != nil {
		return err
	}
	return db.Migrate(ctx, side, "minichat", own)
}

// chat is the service, with its outbox.
type chat struct {
	pool       *pgxpool.Pool
	module     *modkit.Module
	dispatcher *outbox.Relay
	broker     *natsjs.Publisher
}

// newChat makes the tables that are missing, and the parts of the service. Nothing runs yet.
func newChat(ctx context.Context, db *database.Database, broker natsjs.Config, log *slog.Logger) (*chat, error) {
	layout := modkit.Layout()
	table, err := modkit.Migrations(layout)
	if err != nil {
		return nil, err
	}
	err = errors.Join(db.Migrate(ctx, layout.Name, layout.Table, table), migrate(ctx, db, "chat"))
	if err != nil {
		return nil, err
	}
	c := &chat{pool: db.Pool}
	if c.broker, err = natsjs.New(broker); err != nil {
		return nil, err
	}
	c.module, err = modkit.NewModule(db.Pool, modkit.Config{
		Namespace: namespace,
		// A killed process is noticed quickly here; a real service takes longer times.
		LeaseDuration: 2 * time.Second,
		MaxAttempts:   4,
		Retry:         outbox.RetryPolicy{Base: 50 * time.Millisecond, Max: time.Second},
	})
	if err != nil {
		return nil, err
	}
	c.dispatcher, err = modkit.NewDispatcher(c.module, modkit.DispatcherConfig{
		Handlers: map[string]modkit.Handler{topic: c.publish}, OffPool: true, Logger: log,
	})
	return c, err
}

// publish hands a message to the broker. It is delivered when the broker has it on disk; what
// billing makes of it is billing's business. No message is to blame for a broker that is away, or
// that does not answer in time.
func (c *chat) publish(ctx context.Context, message modkit.ClaimedMessage) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	err := c.broker.Publish(ctx, []outbox.Message{{
		Event: outbox.Event{
			ID: message.ID, Namespace: message.Namespace, Topic: message.Topic,
			TenantID: message.TenantID, DedupeKey: message.DedupeKey, Payload: message.Payload,
		},
		Attempt: message.Attempts,
	}})[0]
	if err != nil && (outbox.Classify(err) == outbox.ClassUnavailable || ctx.Err() != nil) {
		return outbox.Unavailable(err)
	}
	return err
}
