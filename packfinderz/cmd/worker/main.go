// Command worker consumes the domain events and writes their notifications. See docs/worker.md. The environment
// configures it.
package main

import (
	"context"
	"fmt"
	"log/slog"

	goredis "github.com/redis/go-redis/v9"

	"github.com/packfinderz/outbox/packfinderz/internal/env"
	"github.com/packfinderz/outbox/packfinderz/internal/program"
	"github.com/packfinderz/outbox/packfinderz/internal/pubsub"
)

func main() {
	program.Main("worker", func(ctx context.Context, args []string, lookup program.Lookup, log *slog.Logger) error {
		// Both clients have one log for the whole process, and would write lines of their own to standard error.
		goredis.SetLogger(redisLog{log})
		pubsub.LogTo(log)
		return run(ctx, args, lookup, log)
	})
}

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
