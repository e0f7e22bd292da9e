// Demo shows the whole road of an event, on a private PostgreSQL and a NATS server of its own.
// It is a program beside outbox, so that the relay people run does not contain a broker.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/packfinderz/outbox/examples/internal/demo"
	"github.com/packfinderz/outbox/internal/testing/pgserver"
)

func main() {
	pgserver.RunKeeperIfAsked()
	config := demo.Config{Out: os.Stdout, OutageFor: 5 * time.Second}
	flag.IntVar(&config.Rate, "rate", 5, "orders per second, 1 to 1000")
	flag.DurationVar(&config.For, "for", 0, "how long (default: until Ctrl-C)")
	flag.DurationVar(&config.OutageEvery, "outage-every", 40*time.Second, "time between outages of the broker; 0 for none")
	flag.StringVar(&config.Console, "console", "127.0.0.1:8090", "address of the console")
	flag.Parse()
	if config.Rate < 1 || config.Rate > 1000 || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "demo: --rate must be between 1 and 1000, and there are no arguments; see --help")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := demo.Run(ctx, config)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}
