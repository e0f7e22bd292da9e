package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/packfinderz/outbox/ops"
)

func newRetry(a *app) *cobra.Command {
	var from operated
	var filter filterFlags
	var change ops.Change
	var all bool
	var before string
	cmd := &cobra.Command{
		Use:   "retry [ID…]",
		Short: "Bring dead events back",
		Long: `Makes dead events due again, with the same ids and no attempts counted: those with the given
ids, or all that match the flags. It works in batches; each is committed together with its
entry in the audit log. When interrupted it finishes the batch and says how to continue.

With ids it exits with 1 if one of them is not dead; it retries the others all the same.`,
		Example: `  outbox retry --from postgres://localhost/shop 01890000-0000-7000-8000-000000000000
  outbox retry --from postgres://localhost/shop --type order_paid --error 'connection # refused' --dry-run`,
		RunE: func(cmd *cobra.Command, args []string) error {
			wanted, err := filter.parse(args)
			if err != nil {
				return err
			}
			if wanted.Empty() && !all {
				return usagef("%s takes the ids of events, a filter such as --type, or --all; see --help", cmd.CommandPath())
			}
			if change.Before, err = parseTime("before", before); err != nil {
				return err
			}
			change.Actor = from.actor()
			return from.operate(cmd.Context(), func(events *ops.Outbox) error {
				return a.retry(cmd.Context(), events, wanted, change)
			})
		},
	}
	from.changeFlags(cmd, &change)
	filter.flags(cmd)
	filter.errorFlag(cmd)
	f := cmd.Flags()
	f.BoolVar(&all, "all", false, "all dead events")
	f.IntVar(&change.BatchSize, "batch-size", 1000, "events per transaction")
	f.StringVar(&before, "before", "", "only events that died before this `time`, to continue an interrupted retry")
	return cmd
}

func (a *app) retry(ctx context.Context, events *ops.Outbox, filter ops.Filter, change ops.Change) error {
	result, err := withBar(ctx, a.Err, change, func(ctx context.Context, change ops.Change) (*ops.Result, error) {
		return events.Retry(ctx, filter, change)
	})
	if err != nil {
		return err
	}
	goOn := "the same command with --before " + result.Before.Format(time.RFC3339Nano)
	if len(filter.IDs) == 0 || result.DryRun {
		return a.printResult(result, "retrying", "would retry", goOn)
	}
	if err := a.answer(map[string]any{"retried": result.IDs}, "retrying %s\n", plural(result.Events, "event")); err != nil {
		return err
	}
	if err := a.finish(result, goOn); err != nil {
		return err
	}
	return leftAlone(ctx, events, "dead", filter.IDs, result.IDs)
}

// leftAlone returns an error that names the unchanged events, and those that do not exist.
func leftAlone(ctx context.Context, events *ops.Outbox, state string, wanted, changed []uuid.UUID) error {
	var others, unknown []string
	for _, id := range wanted {
		if slices.Contains(changed, id) {
			continue
		}
		if _, err := events.Show(ctx, id); errors.Is(err, ops.ErrNotFound) {
			unknown = append(unknown, id.String())
		} else {
			others = append(others, id.String())
		}
	}
	var parts []string
	if len(unknown) > 0 {
		parts = append(parts, "there is no such event: "+strings.Join(unknown, ", "))
	}
	if len(others) > 0 {
		parts = append(parts, fmt.Sprintf("not %s, and left alone: %s", state, strings.Join(others, ", ")))
	}
	if len(parts) == 0 {
		return nil
	}
	return errors.New(strings.Join(parts, "; "))
}
