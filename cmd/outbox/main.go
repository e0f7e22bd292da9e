// Command outbox is the transactional outbox's program: it creates the tables, emits events and relays them. See
// outbox --help.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9/logging"

	"github.com/packfinderz/outbox/cmd/outbox/internal/cli"
)

func main() {
	logging.Disable() // the Redis client's own lines are no JSON, and say nothing that ours do not
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return cli.Run(ctx, os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
}
