package cli

import (
	"cmp"
	"context"
	"os"
	"os/user"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/packfinderz/outbox/ops"
)

// operated is the outbox that a command looks at or changes.
type operated struct {
	source
	subscription, as string
}

func (o *operated) flags(cmd *cobra.Command) {
	o.source.flags(cmd)
	cmd.Flags().StringVar(&o.subscription, "subscription", "", "`name` of the stream's subscription (default \"default\")")
}

// changeFlags adds the flags of commands that change events.
func (o *operated) changeFlags(cmd *cobra.Command, change *ops.Change) {
	o.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.as, "as", "", "`name` to write into the audit log (default: the user's)")
	f.BoolVar(&change.DryRun, "dry-run", false, "count only")
}

func (o *operated) actor() string {
	if name := cmp.Or(o.as, os.Getenv("USER")); name != "" {
		return name
	}
	if current, err := user.Current(); err == nil {
		return current.Username
	}
	return "unknown"
}

// operate runs work on the outbox that the flags name.
func (o *operated) operate(ctx context.Context, work func(*ops.Outbox) error) error {
	return o.connected(ctx, 3, func(found place, pool *pgxpool.Pool) error {
		named, err := found.outbox(pool, o.subscription)
		if err != nil {
			return err
		}
		if err := named.Verify(ctx); err != nil {
			return err
		}
		return work(named)
	})
}

// printResult prints the result of a change, for people or as JSON. An interrupted change is an error, which says
// how to go on.
func (a *app) printResult(result *ops.Result, done, would, goOn string) error {
	var err error
	switch {
	case a.json:
		err = a.printJSON(result)
	case result.DryRun:
		err = a.printf("%s %s\n", would, atLeast(result.Events, result.AtLeast))
	default:
		err = a.printf("%s %s\n", done, plural(result.Events, "event"))
	}
	if err != nil {
		return err
	}
	return a.finish(result, goOn)
}

// printBrief prints the result of a purge or a replay as JSON.
func (a *app) printBrief(result *ops.Result) error {
	return a.printJSON(map[string]any{"events": result.Events, "dryRun": result.DryRun})
}

// finish prints what else a person should know about a change.
func (a *app) finish(result *ops.Result, goOn string) error {
	if result.Unaudited != "" && !result.DryRun {
		a.note("not audited: " + result.Unaudited)
	}
	if result.Interrupted {
		return interrupted(result.Events, goOn)
	}
	return nil
}

func atLeast(n int64, more bool) string {
	if more {
		return "at least " + plural(n, "event")
	}
	return plural(n, "event")
}
