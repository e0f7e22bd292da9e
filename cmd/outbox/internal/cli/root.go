// Package cli is the command line of the outbox program. Each command is a file; other packages do the work.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// Exit codes that scripts can rely on.
const (
	exitOK     = 0
	exitFailed = 1 // the work was tried and failed
	exitUsage  = 2 // nothing was tried: bad flags, bad input, no database, no table

	exitWarnings = 3 // doctor found warnings
	exitProblems = 4 // doctor found problems
)

// Streams are the program's standard streams.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Run runs one command line and returns its exit code.
func Run(ctx context.Context, args []string, streams Streams) int {
	root := newRoot(streams)
	root.SetArgs(args)
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	var exit exitError
	if errors.As(err, &exit) {
		return int(exit)
	}
	_, _ = fmt.Fprintf(streams.Err, "outbox: %s\n", message(err))
	var usage *usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailed
}

type app struct {
	Streams
	json bool
}

func newRoot(streams Streams) *cobra.Command {
	a := &app{Streams: streams}
	root := &cobra.Command{
		Use:   "outbox",
		Short: "The transactional outbox for Go on PostgreSQL",
		Long: `outbox runs transactional outboxes on PostgreSQL: streams, and tables that you already have.

Exit codes: 0 done, 1 tried and failed, 2 not tried (bad flags or input, no database, no table);
doctor exits with 3 for warnings and 4 for problems.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%s; see %s --help", err, cmd.CommandPath())
	})
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print JSON for machines")
	root.AddCommand(newMigrate(a), newLayouts(a), newDestinations(a), newEmit(a), newRelay(a), newConsole(a), newDrain(a), newPurge(a),
		newStats(a), newTop(a), newList(a), newShow(a), newRetry(a), newReplay(a), newHold(a), newRelease(a), newAudit(a),
		newSubscriptions(a), newRepair(a), newDoctor(a), newVersion(a))
	completeFlags(root)
	return root
}

// printJSON writes one value as one line.
func (a *app) printJSON(value any) error {
	encoder := json.NewEncoder(a.Out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}

func (a *app) printf(format string, args ...any) error {
	if _, err := fmt.Fprintf(a.Out, format, args...); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}

// answer writes a value for machines, or else a line for people.
func (a *app) answer(value any, format string, args ...any) error {
	if a.json {
		return a.printJSON(value)
	}
	return a.printf(format, args...)
}

// printEach answers with every element of a list: as JSON, or by its line for people.
func printEach[T any](a *app, list []T, line func(T) string) error {
	for _, element := range list {
		var err error
		if a.json {
			err = a.printJSON(element)
		} else {
			err = a.printf("%s\n", line(element))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func plural(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
