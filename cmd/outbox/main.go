// Command outbox is the transactional outbox's program: it makes the tables, emits
// events, and shows layouts. See outbox --help.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/packfinderz/outbox/cmd/outbox/internal/cli"
)

func main() {
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return cli.Run(ctx, os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
}
