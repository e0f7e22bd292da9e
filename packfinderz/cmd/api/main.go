// Command api is the part of the backend that changes licences: over HTTP, each change and its event in one
// transaction.
//
//	api                 answer requests
//	api migrate         make the tables that are missing, the outbox's and the sample's, and end
//	api migrate outbox  make those of the outbox only, and end
//
// Its configuration is in the environment.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/packfinderz/outbox/packfinderz/internal/env"
	"github.com/packfinderz/outbox/packfinderz/internal/migrate"
	"github.com/packfinderz/outbox/packfinderz/internal/program"
)

func main() { program.Main("api", run) }

func run(ctx context.Context, args []string, lookup program.Lookup, log *slog.Logger) error {
	switch {
	case len(args) == 0:
		config, err := readConfig(lookup)
		if err != nil {
			return err
		}
		return serve(ctx, config, log)
	case slices.Equal(args, []string{"migrate"}):
		return withDatabase(ctx, lookup, log, migrate.Up)
	case slices.Equal(args, []string{"migrate", "outbox"}):
		return withDatabase(ctx, lookup, log, migrate.Outbox)
	}
	return fmt.Errorf("%w: the arguments are %q; there can be none, or migrate, or migrate outbox", env.ErrUsage, args)
}

// withDatabase migrates. Where to listen does not matter then: a release has PORT set, and no need for a gateway's secret.
func withDatabase(
	ctx context.Context, lookup program.Lookup, log *slog.Logger, up func(ctx context.Context, database string, log *slog.Logger) error,
) error {
	r := env.NewReader(lookup)
	database := r.Database()
	r.ContractTables()
	if err := r.Err(); err != nil {
		return err
	}
	return up(ctx, database, log)
}
