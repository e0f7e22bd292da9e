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
	"os"
	"os/signal"
	"syscall"

	"github.com/packfinderz/outbox/packfinderz/internal/migrate"
)

func main() {
	log := slog.New(slog.NewJSONHandler(os.Stdout, nil))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.LookupEnv, log)
	stop()
	if err != nil {
		log.Error("the api ended", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, lookup func(string) (string, bool), log *slog.Logger) error {
	config, err := readConfig(lookup)
	switch {
	case err != nil:
		return err
	case len(args) == 0:
		return serve(ctx, config, log)
	case len(args) == 1 && args[0] == "migrate":
		return migrate.Up(ctx, config.database, log)
	}
	return fmt.Errorf("the arguments are %q; there can be none, or migrate", args)
}
