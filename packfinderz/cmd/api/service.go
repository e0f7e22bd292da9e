package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/packfinderz/internal/database"
	"github.com/packfinderz/outbox/packfinderz/internal/env"
	"github.com/packfinderz/outbox/packfinderz/internal/httpapi"
	"github.com/packfinderz/outbox/packfinderz/internal/httpserver"
	"github.com/packfinderz/outbox/packfinderz/internal/licensing"
	"github.com/packfinderz/outbox/packfinderz/internal/program"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox"
)

type config struct{ database, listen, secret string }

const (
	listenVariable = "PACKFINDERZ_API_LISTEN"
	secretVariable = "PACKFINDERZ_API_GATEWAY_SECRET" //nolint:gosec // the name of a variable
)

func readConfig(lookup program.Lookup) (config, error) {
	r := env.NewReader(lookup)
	// It has no users of its own, so it needs a gateway in front. Anybody can reach Heroku's router, at PORT.
	c := config{database: r.Database(), listen: r.Listen("127.0.0.1:8080", listenVariable), secret: r.Text("", secretVariable)}
	host, _, err := net.SplitHostPort(c.listen)
	switch {
	case err != nil: // which was refused already
	case c.secret == "" && !httpapi.IsLoopback(host):
		r.Refuse(secretVariable, "is not set, and %s can be reached from other machines: set it to a secret that only the gateway knows, "+
			"such as that of openssl rand -hex 32, or %s to 127.0.0.1:8080", c.listen, listenVariable)
	case c.secret != "" && len(c.secret) < httpapi.LeastSecret:
		r.Refuse(secretVariable, "has fewer than %d characters", httpapi.LeastSecret)
	}
	return c, r.Err()
}

// serve answers until ctx ends.
func serve(ctx context.Context, config config, log *slog.Logger) (err error) {
	pool, err := pgxpool.New(ctx, config.database)
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	defer pool.Close()
	if err := licensing.Fits(ctx, pool, log); err != nil {
		return err
	}
	db, err := database.Open(pool)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	events, err := outbox.NewService(outbox.Config{Logger: log})
	if err != nil {
		return err
	}
	licenses, err := licensing.New(db.DB, events)
	if err != nil {
		return err
	}

	mux := http.NewServeMux()
	httpserver.Health(mux, httpserver.Check{Name: "PostgreSQL", Ping: func(ctx context.Context) error { return licensing.Ready(ctx, pool) }})
	mux.Handle("/", httpapi.Guard(config.secret, httpapi.New(licenses, log), log))
	server, err := httpserver.Start(listenVariable, config.listen, mux, log)
	if err != nil {
		return err
	}
	return server.Run(ctx)
}
