// Command api is the part of the backend that changes licences: over HTTP, each change and its event in one
// transaction. Its configuration is in the environment.
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
		log.Error("the api ended", "error", err)
		os.Exit(1)
	}
}
