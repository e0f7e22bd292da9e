// Command outbox-publisher moves the events of outbox_events to Pub/Sub until it is stopped:
//
//	outbox-publisher          publish
//	outbox-publisher cleanup  delete published rows that are past their retention, and end
//
// It knows nothing of what the events mean: where each goes and what it must look like is in
// pkg/outbox/registry. docs/outbox.md says how it works; its configuration is in the environment.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	log := slog.New(slog.NewJSONHandler(os.Stdout, nil))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.LookupEnv, log)
	stop()
	if err != nil {
		log.Error("the publisher ended", "error", err)
		os.Exit(exitCode(err))
	}
}

// errUsage is what whoever started the program has to mend, not whoever runs the servers.
var errUsage = errors.New("wrong use")

func exitCode(err error) int {
	if errors.Is(err, errUsage) {
		return 2
	}
	return 1
}

func run(ctx context.Context, args []string, lookup func(string) (string, bool), log *slog.Logger) error {
	switch {
	case len(args) == 0:
		return publish(ctx, lookup, log)
	case len(args) == 1 && args[0] == "cleanup":
		return cleanup(ctx, lookup, log)
	}
	return fmt.Errorf("%w: the arguments are %q; there can be none, or cleanup", errUsage, args)
}
