package main

import (
	"context"
	"embed"
	"io/fs"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/examples/internal/database"
	"github.com/packfinderz/outbox/layouts/modkit"
	"github.com/packfinderz/outbox/outboxpgx"
	"github.com/packfinderz/outbox/pgstore"
)

//go:embed migrations/*.sql
var files embed.FS

// The module's place in the shared table.
const (
	namespace = "mini-chat"
	topic     = "usage"
)

// service is the chat, with its outbox.
type service struct {
	pool       *pgxpool.Pool
	emitter    *outboxpgx.Emitter
	dispatcher *outbox.Relay
	// events is for what people want to know of them, and to do.
	events *pgstore.Store
}

// newService makes the tables that are missing, and the parts of the service. Nothing runs yet.
func newService(ctx context.Context, db *database.Database, log *slog.Logger) (*service, error) {
	layout := modkit.Layout()
	table, err := modkit.Migrations(layout)
	if err != nil {
		return nil, err
	}
	own, err := fs.Sub(files, "migrations")
	if err != nil {
		return nil, err
	}
	// The outbox program remembers its migrations by the first name, so that it may make the table, too.
	for versions, migrations := range map[string]fs.FS{"modkit_outbox_events_modkit_goose": table, "minichat_goose": own} {
		if err := db.Migrate(ctx, versions, migrations); err != nil {
			return nil, err
		}
	}
	s := &service{pool: db.Pool}
	config := modkit.StoreConfig{
		Namespace: namespace,
		// A killed process is noticed quickly here; a real service takes longer times.
		LeaseDuration: 2 * time.Second,
		MaxAttempts:   4,
		Retry:         outbox.RetryPolicy{Base: 50 * time.Millisecond, Max: time.Second},
	}
	s.dispatcher, err = modkit.NewDispatcher(db.Pool, modkit.DispatcherConfig{
		Store: config, PollInterval: 250 * time.Millisecond, Logger: log,
		Concurrency: 2, // billing shares the pool with requests, and with the dispatcher's own claims
	}, s.bill)
	if err != nil {
		return nil, err
	}
	s.events, err = pgstore.New(db.Pool, layout, pgstore.Config{
		MaxAttempts: config.MaxAttempts, Filter: pgstore.Filter{Namespace: namespace},
	})
	if err != nil {
		return nil, err
	}
	s.emitter, err = outboxpgx.New(layout, &outbox.EmitConfig{
		DefaultNamespace: namespace, DefaultTopic: topic, Nudge: s.dispatcher.Nudge,
	})
	return s, err
}
