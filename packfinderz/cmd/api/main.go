// Command api changes licences over HTTP, each change and its event in one transaction.
//
//	api                 answer requests
//	api migrate         create the missing tables of the outbox and of the sample, and exit
//	api migrate outbox  create those of the outbox only, and exit
//
// The environment configures it.
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

// withDatabase migrates. It does not read where to listen: a release has PORT set, but needs no gateway's secret.
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
