// Command api is the part of the backend that changes licences: over HTTP, each change and its event in one
// transaction.
//
//	api          answer requests
//	api migrate  make the tables that are missing, the outbox's too, and end
//
// Its configuration is in the environment.
package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/packfinderz/outbox/packfinderz/internal/env"
	"github.com/packfinderz/outbox/packfinderz/internal/migrate"
	"github.com/packfinderz/outbox/packfinderz/internal/program"
)

func main() { program.Main("api", run) }

func run(ctx context.Context, args []string, lookup program.Lookup, log *slog.Logger) error {
	config, err := readConfig(lookup)
	switch {
	case err != nil:
		return err
	case len(args) == 0:
		return serve(ctx, config, log)
	case len(args) == 1 && args[0] == "migrate":
		return migrate.Up(ctx, config.database, log)
	}
	return fmt.Errorf("%w: the arguments are %q; there can be none, or migrate", env.ErrUsage, args)
}
