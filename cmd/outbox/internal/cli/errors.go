package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/layouts/survey"
	"github.com/packfinderz/outbox/ops"
	"github.com/packfinderz/outbox/pgstore"
	"github.com/packfinderz/outbox/pgstream"
)

// usageError is an error found before anything was tried; the program exits with 2.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// exitError ends the program with a code and no message: everything is already printed.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// interruptedError means that something was told to stop. What it did is done.
type interruptedError struct {
	events int64
	goOn   string
}

func (e interruptedError) Error() string {
	return fmt.Sprintf("interrupted after %s; to go on: %s", plural(e.events, "event"), e.goOn)
}

func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// noArgs and maxArgs refuse surplus arguments with the program's own exit code.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("unknown command or argument %q; see %s --help", args[0], cmd.CommandPath())
	}
	return nil
}

// exactArgs wants one argument for each name.
func exactArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != len(names) {
			return usagef("%s takes %s; see --help", cmd.CommandPath(), strings.Join(names, " "))
		}
		return nil
	}
}

func maxArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return usagef("%s takes at most %d argument; see --help", cmd.CommandPath(), n)
		}
		return nil
	}
}

// message returns the one line shown for an error: no repeated prefix, no line breaks.
func message(err error) string {
	return strings.TrimPrefix(strings.Join(strings.Fields(err.Error()), " "), "outbox: ")
}

// classify turns errors of the database that mean "this was never going to work" into usage errors with a hint; it
// returns others unchanged.
func classify(err error, hint string) error {
	var pgErr *pgconn.PgError
	var connectErr *pgconn.ConnectError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, outbox.ErrInvalidEvent), errors.Is(err, outbox.ErrInvalidLayout),
		errors.Is(err, pgstream.ErrNoStream), errors.Is(err, pgstream.ErrRestored), errors.Is(err, pgstream.ErrStandby), errors.Is(err, pgstream.ErrSequence), errors.Is(err, pgstream.ErrNotOwner), errors.Is(err, pgstore.ErrMismatch),
		errors.Is(err, pgstream.ErrSchemaOlder), errors.Is(err, pgstream.ErrSchemaNewer), errors.Is(err, pgstream.ErrSchemaIncomplete),
		errors.Is(err, pgstream.ErrNoSubscription), errors.Is(err, pgstream.ErrSubscriptionExists),
		errors.Is(err, pgstream.ErrHalfMade), errors.Is(err, pgstream.ErrSubscriptionServed),
		errors.Is(err, survey.ErrConflict), errors.Is(err, ops.ErrUnsupported), errors.Is(err, ops.ErrFilter):
		return &usageError{err}
	case errors.As(err, &connectErr):
		return usagef("cannot reach the database: %w", err)
	case errors.As(err, &pgErr) && strings.HasPrefix(pgErr.Code, "08"): // a pooler that cannot reach the server
		return usagef("cannot reach the database: %w", err)
	case errors.As(err, &pgErr):
		switch pgErr.Code {
		case "42P01", "3F000", "42703", "42704": // no such table, schema, column, type
			return usagef("%s: %s", pgErr.Message, hint)
		case "42501": // no right to
			return usagef("%w; the role needs that right; outbox doctor names the GRANT, see docs/roles.md", err)
		case "25006": // in a read-only transaction
			return usagef("%w; this server is a standby, or the role reads only: connect to the primary", err)
		}
	}
	return err
}
