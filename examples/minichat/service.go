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
	module     *modkit.Module
	dispatcher *outbox.Relay
}

// newService makes the tables that are missing, and the parts of the service. Nothing runs yet.
func newService(ctx context.Context, db *database.Database, log *slog.Logger) (*service, error) {
	table, err := modkit.Migrations(modkit.Layout())
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
	s.module, err = modkit.NewModule(db.Pool, modkit.Config{
		Namespace: namespace,
		// A killed process is noticed quickly here; a real service takes longer times.
		LeaseDuration: 2 * time.Second,
		MaxAttempts:   4,
		Retry:         outbox.RetryPolicy{Base: 50 * time.Millisecond, Max: time.Second},
	})
	if err != nil {
		return nil, err
	}
	s.dispatcher, err = modkit.NewDispatcher(s.module, modkit.DispatcherConfig{
		Handlers: map[string]modkit.Handler{topic: s.bill}, Logger: log,
	})
	return s, err
}
