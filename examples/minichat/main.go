// Minichat is a chat service with quotas on the ModKit outbox: finalising a turn writes what it
// used and one event about it in one transaction, and a dispatcher hands the event to billing,
// which counts every turn once.
//
// Without --listen it takes a tour of itself over HTTP and ends. It runs on a private PostgreSQL,
// or on the database of --database.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/packfinderz/outbox/examples/internal/database"
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

	address := listen
	if address == "" {
		address = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{Handler: chat.routes(), ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	base := "http://" + listener.Addr().String()
	if listen == "" {
		err = tour(ctx, &client{base: base}, out)
	} else {
		_, _ = fmt.Fprintf(out, "listening on %s, with the database %s\n", base, db.URL)
		<-ctx.Done()
	}
	return errors.Join(err, stopServing(server, served))
}

// stopServing lets requests end before the dispatcher and the database do.
func stopServing(server *http.Server, served <-chan error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return fmt.Errorf("stop serving: %w", err)
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
