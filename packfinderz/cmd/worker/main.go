// Command worker consumes the domain events and writes the notifications that follow from them.
// docs/worker.md says how; its configuration is in the environment.
package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	log := slog.New(slog.NewJSONHandler(os.Stdout, nil))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.LookupEnv, log)
	stop()
	if err != nil {
		log.Error("the worker ended", "error", err)
		os.Exit(1)
	}
}
