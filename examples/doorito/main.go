// Doorito is a service with uploads and accounts. Storing a file emits file.stored, creating a user
// emits user.created, each in the transaction that stores it; handlers in the same process make a
// thumbnail job and a welcome mail of them. Its outbox table is that of the Doorito contract.
//
// Without flags it takes a tour of itself on a private PostgreSQL and ends. With --listen it serves
// until Ctrl-C.
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
	"time"

	"github.com/packfinderz/outbox/examples/internal/database"
	"github.com/packfinderz/outbox/examples/internal/web"
	"github.com/packfinderz/outbox/pgstore"
)

type options struct {
	database string
	listen   string
	lease    time.Duration
}

func main() {
	database.RunKeeperIfAsked()
	var o options
	flag.StringVar(&o.database, "database", "", "`URL` of a PostgreSQL database (default: a private one)")
	flag.StringVar(&o.listen, "listen", "", "`address` to serve on until Ctrl-C (default: take the tour)")
	flag.DurationVar(&o.lease, "lease", pgstore.DefaultLease, "how long an event is kept from others while it is handled")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "doorito:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, out io.Writer) (err error) {
	db, err := database.Open(ctx, o.database)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // what is to be kept is committed
	say := newNarrator(out)
	if db.Private {
		say.printf("a private PostgreSQL runs; it ends with this program")
	}
	if err := migrate(ctx, db); err != nil {
		return err
	}
	// The narrator tells what becomes of events; on a tour nobody needs to read it twice.
	log := slog.New(slog.DiscardHandler)
	if o.listen != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	s, err := newService(db, o.lease, say, log)
	if err != nil {
		return err
	}
	if err := s.relay.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.relay.Stop(context.WithoutCancel(ctx))) }()
	if o.listen == "" {
		return web.Serve(ctx, "127.0.0.1:0", s.routes(), func(url string) error { return tour(ctx, s, url) })
	}
	return web.Serve(ctx, o.listen, s.routes(), func(url string) error {
		say.printf("listening on %s", url)
		say.printf("  curl -d 'meow' %s/files/cat.png", url)
		say.printf("  curl -d 'click' %s/files/photo.heic", url)
		say.printf("  curl -d '{\"email\": \"ada@example.com\"}' %s/users", url)
		<-ctx.Done()
		return nil
	})
}
