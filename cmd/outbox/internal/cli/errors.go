package cli

import (
	"errors"
	"fmt"
	"slices"
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

// interrupted is the error of a change that was told to stop. What it did is done.
func interrupted(events int64, goOn string) error {
	return fmt.Errorf("interrupted after %s; to go on: %s", plural(events, "event"), goOn)
}

// asUsage makes an error a usageError; nil stays nil.
func asUsage(err error) error {
	if err == nil {
		return nil
	}
	return &usageError{err}
}

func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// noArgs, atMostOneArg and exactArgs refuse other numbers of arguments with the program's own exit code.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("unknown command or argument %q; see %s --help", args[0], cmd.CommandPath())
	}
	return nil
}

func exactArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != len(names) {
			return usagef("%s takes %s; see --help", cmd.CommandPath(), strings.Join(names, " "))
		}
		return nil
	}
}

func atMostOneArg(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usagef("%s takes at most 1 argument; see --help", cmd.CommandPath())
	}
	return nil
}

// message returns the one line shown for an error: no repeated prefix, no line breaks.
func message(err error) string {
	return strings.TrimPrefix(strings.Join(strings.Fields(err.Error()), " "), "outbox: ")
}

// hopeless are errors that stay until a person changes something.
var hopeless = []error{
	outbox.ErrInvalidEvent, outbox.ErrInvalidLayout, ops.ErrUnsupported, ops.ErrFilter, survey.ErrConflict, pgstore.ErrMismatch,
	pgstream.ErrNoStream, pgstream.ErrRestored, pgstream.ErrStandby, pgstream.ErrSequence, pgstream.ErrNotOwner,
	pgstream.ErrSchemaOlder, pgstream.ErrSchemaNewer, pgstream.ErrSchemaIncomplete, pgstream.ErrNoSubscription,
	pgstream.ErrSubscriptionExists, pgstream.ErrHalfMade, pgstream.ErrSubscriptionServed,
}

// classify turns errors that no other try would avoid into usage errors with a hint; it returns others unchanged.
func classify(err error, hint string) error {
	var pgErr *pgconn.PgError
	var connectErr *pgconn.ConnectError
	switch {
	case err == nil:
		return nil
	case slices.ContainsFunc(hopeless, func(target error) bool { return errors.Is(err, target) }):
		return &usageError{err}
	case errors.As(err, &connectErr),
		errors.As(err, &pgErr) && strings.HasPrefix(pgErr.Code, "08"): // a pooler that cannot reach the server
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
