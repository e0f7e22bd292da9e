package main

import (
	"context"
	"embed"
	"io/fs"
	"log/slog"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume/inbox/pginbox"
	"github.com/packfinderz/outbox/destinations/handlers"
	"github.com/packfinderz/outbox/examples/internal/database"
	"github.com/packfinderz/outbox/layouts/doorito"
	"github.com/packfinderz/outbox/outboxpgx"
	"github.com/packfinderz/outbox/pgstore"
)

//go:embed migrations/*.sql
var files embed.FS

// service is all that runs: what emits, what handles, and the relay between them.
type service struct {
	db      *database.Database
	emitter *outboxpgx.Emitter
	store   *pgstore.Store
	relay   *outbox.Relay
	inbox   *pginbox.Inbox
	say     *narrator
}

// migrate makes the tables of the outbox, of the inbox, and the service's own.
func migrate(ctx context.Context, db *database.Database) error {
	layout := doorito.Layout()
	table, err := doorito.Migrations(layout)
	if err != nil {
		return err
	}
	if err := db.Migrate(ctx, layout.Name, layout.Table, table); err != nil {
		return err
	}
	if err := pginbox.Migrate(ctx, db.Pool, pginbox.Config{}); err != nil {
		return err
	}
	own, err := fs.Sub(files, "migrations")
	if err != nil {
		return err
	}
	return db.Migrate(ctx, "service", "doorito", own)
}

// newService connects the parts. The relay does not run yet.
func newService(db *database.Database, lease time.Duration, say *narrator, log *slog.Logger) (s *service, err error) {
	s = &service{db: db, say: say}
	if s.inbox, err = pginbox.New(pginbox.Config{}); err != nil {
		return nil, err
	}
	set, err := handlers.New(handlers.Config{
		// An event whose type has no handler is tried again: its handler may come with the next deploy.
		RetryUnknown: true,
		// Handlers that are slow leave connections to requests: the pool has four at least.
		Concurrency: 2,
		Logger:      log,
	})
	if err != nil {
		return nil, err
	}
	if err := handlers.Handle(set, fileStoredType, "thumbnail", s.queueThumbnail); err != nil {
		return nil, err
	}
	if err := handlers.Handle(set, userCreatedType, "welcome", s.sendWelcome); err != nil {
		return nil, err
	}
	if s.store, err = pgstore.New(db.Pool, doorito.Layout(), pgstore.Config{Lease: lease}); err != nil {
		return nil, err
	}
	s.relay, err = outbox.NewRelay(outbox.RelayConfig{
		Store: s.store, Publisher: set, Logger: log, Hooks: []any{say},
		// The safety net: what no commit of this process announces is found by looking.
		Poll: min(time.Second, lease/3),
		// Quick, so that the tour does not last; a real service has the default.
		Retry: outbox.RetryPolicy{Base: 100 * time.Millisecond, Max: time.Second},
	})
	if err != nil {
		return nil, err
	}
	// Events are delivered at once: each commit wakes the relay.
	s.emitter, err = outboxpgx.New(doorito.Layout(), outbox.EmitConfig{Nudge: s.relay.Nudge})
	return s, err
}
