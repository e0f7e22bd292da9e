// Minichat is a chat service with quotas on the ModKit outbox: finalising a turn writes what it
// used and one event about it in one transaction, and a dispatcher hands the event to billing,
// which counts every turn once.
//
// Without --listen it takes a tour of itself over HTTP and ends. It runs on a private PostgreSQL,
// or on the database of --database.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/packfinderz/outbox/examples/internal/database"
	"github.com/packfinderz/outbox/examples/internal/web"
)

func main() {
	database.RunKeeperIfAsked()
	url := flag.String("database", "", "`URL` of a PostgreSQL database (default: a private one)")
	listen := flag.String("listen", "", "serve on this `address` until Ctrl-C, instead of a tour")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *url, *listen, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "minichat:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, url, listen string, out io.Writer) error {
	db, err := database.Open(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // nothing is left to lose
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	chat, err := newService(ctx, db, log)
	if err != nil {
		return err
	}
	if err := chat.dispatcher.Start(ctx); err != nil {
		return err
	}
	defer chat.dispatcher.Stop()

	if listen == "" {
		return web.Serve(ctx, "127.0.0.1:0", chat.routes(), func(url string) error { return tour(ctx, &client{base: url}, out) })
	}
	return web.Serve(ctx, listen, chat.routes(), func(url string) error {
		_, _ = fmt.Fprintf(out, "listening on %s, with the database %s\n", url, db.URL) // nobody may be listening
		<-ctx.Done()
		return nil
	})
}
