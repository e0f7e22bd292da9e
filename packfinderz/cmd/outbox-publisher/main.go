// Command outbox-publisher publishes the events of outbox_events to Pub/Sub until it is stopped:
//
//	outbox-publisher          publish
//	outbox-publisher cleanup  delete published rows older than their retention, and exit
//
// pkg/outbox/registry says where each event goes and what it must look like. See docs/outbox.md. The environment
// configures it.
package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/packfinderz/outbox/packfinderz/internal/env"
	"github.com/packfinderz/outbox/packfinderz/internal/program"
	"github.com/packfinderz/outbox/packfinderz/internal/pubsub"
)

func main() {
	program.Main("publisher", func(ctx context.Context, args []string, lookup program.Lookup, log *slog.Logger) error {
		pubsub.LogTo(log) // the client has one log for the whole process, and would write lines of its own to standard error
		return run(ctx, args, lookup, log)
	})
}

func run(ctx context.Context, args []string, lookup program.Lookup, log *slog.Logger) error {
	switch {
	case len(args) == 0:
		return publish(ctx, lookup, log)
	case len(args) == 1 && args[0] == "cleanup":
		return cleanup(ctx, lookup, log)
	}
	return fmt.Errorf("%w: the arguments are %q; there can be none, or cleanup", env.ErrUsage, args)
}
