// Command worker consumes the domain events and writes the notifications that follow from them.
// docs/worker.md says how; its configuration is in the environment.
package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/packfinderz/outbox/packfinderz/internal/env"
	"github.com/packfinderz/outbox/packfinderz/internal/program"
)

func main() { program.Main("worker", run) }

func run(ctx context.Context, args []string, lookup program.Lookup, log *slog.Logger) error {
	if len(args) > 0 {
		return fmt.Errorf("%w: the arguments are %q; there can be none", env.ErrUsage, args)
	}
	config, err := readConfig(lookup)
	if err != nil {
		return err
	}
	return work(ctx, config, log)
}
