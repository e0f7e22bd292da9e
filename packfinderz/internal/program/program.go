// Package program has what the mains share: a log, signals, and an exit code.
package program

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/packfinderz/outbox/packfinderz/internal/env"
)

// Lookup is os.LookupEnv, or a test's own.
type Lookup = func(name string) (value string, ok bool)

// Main runs a program until it ends by itself or by SIGTERM or SIGINT, and exits. It logs to standard output, in JSON
// lines, as Heroku expects.
func Main(name string, run func(ctx context.Context, args []string, lookup Lookup, log *slog.Logger) error) {
	log := slog.New(slog.NewJSONHandler(os.Stdout, nil))
	slog.SetDefault(log) // for libraries, and for package log
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.LookupEnv, log)
	stop()
	if err != nil {
		log.Error("the "+name+" ended", "error", err)
	}
	os.Exit(ExitCode(err))
}

// ExitCode is 2 if the person who started the program has to correct something, and 1 for other failures.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, env.ErrUsage):
		return 2
	}
	return 1
}
