// Minichat is two services on the ModKit outbox. The chat has quotas: finalising a turn writes what
// it used and one message about it in one transaction, and a dispatcher publishes the message to
// NATS. Billing, a process with a database of its own, consumes it and counts every turn once.
//
// Without --serve it takes a tour of both and ends. It runs on private servers, or on those of
// --database, --billing-database and --nats.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/packfinderz/outbox/examples/internal/database"
)

// options are the program's flags.
type options struct {
	serve                     string
	database, billingDatabase string
	nats, listen              string
}

func main() {
	database.RunKeeperIfAsked()
	var o options
	flag.StringVar(&o.serve, "serve", "", "serve `chat` or billing until Ctrl-C, instead of a tour")
	flag.StringVar(&o.database, "database", "", "`URL` of the service's PostgreSQL database (default of the tour: a private one)")
	flag.StringVar(&o.billingDatabase, "billing-database", "", "`URL` of billing's database, for the tour (default: a private one)")
	flag.StringVar(&o.nats, "nats", "", "`URL` of a NATS server with JetStream (default of the tour: a private one)")
	flag.StringVar(&o.listen, "listen", "127.0.0.1:0", "`address` to serve on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "minichat:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, out io.Writer) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	switch {
	case o.serve == "":
		return takeTour(ctx, o, out, log)
	case o.database == "" || o.nats == "":
		return errors.New("--serve needs --database and --nats")
	case o.serve == "chat":
		return serveChat(ctx, o, log, func(url string) error { return untilDone(ctx, out, url) })
	case o.serve == "billing":
		return serveBilling(ctx, o, log, func(url string) error { return untilDone(ctx, out, url) })
	}
	return fmt.Errorf("--serve is %q; it is chat or billing", o.serve)
}

// untilDone says where the service is, and waits for the end.
func untilDone(ctx context.Context, out io.Writer, url string) error {
	_, _ = fmt.Fprintln(out, listening+url) // nobody may be listening
	<-ctx.Done()
	return nil
}

// listening is before the URL of a service that is ready.
const listening = "listening on "
