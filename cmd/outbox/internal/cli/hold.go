package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/packfinderz/outbox/ops"
)

func newHold(a *app) *cobra.Command {
	return a.holdCommand(&cobra.Command{
		Use:   "hold [ID…]",
		Short: "Keep parked events of a stream from being published",
		Long: `Holds parked events, which wait for a retry or behind another event, and with each all later
events of its key, until they are released. An event that has not failed is not parked and
cannot be held. Queue tables have no such state.`,
		Example: "  outbox hold --from postgres://localhost/shop --key order/42",
	}, "held", "would hold", "parked", "no matching event is parked; one that has not failed cannot be held", (*ops.Outbox).Hold)
}

func newRelease(a *app) *cobra.Command {
	return a.holdCommand(&cobra.Command{
		Use:     "release [ID…]",
		Short:   "Make held events due",
		Example: "  outbox release --from postgres://localhost/shop --key order/42",
	}, "released", "would release", "held", "no matching event is held", (*ops.Outbox).Release)
}

// holdCommand is hold or release. none is what it says if it finds no event in the state.
func (a *app) holdCommand(
	cmd *cobra.Command, done, would, state, none string,
	do func(*ops.Outbox, context.Context, ops.Filter, ops.Change) (*ops.Result, error),
) *cobra.Command {
	var from operated
	var filter filterFlags
	var change ops.Change
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		wanted, err := filter.parse(args)
		if err != nil {
			return err
		}
		if wanted.Empty() {
			return usagef("%s takes the ids of events, or a filter such as --key; see --help", cmd.CommandPath())
		}
		change.Actor = from.actor()
		return from.operate(cmd.Context(), func(events *ops.Outbox) error {
			result, err := do(events, cmd.Context(), wanted, change)
			if err != nil {
				return err
			}
			if err := a.printResult(result, done, would, "the same command"); err != nil || result.DryRun {
				return err
			}
			if result.Events == 0 && len(wanted.IDs) == 0 {
				a.note(none)
			}
			return leftAlone(cmd.Context(), events, state, wanted.IDs, result.IDs)
		})
	}
	from.changeFlags(cmd, &change)
	filter.flags(cmd)
	return cmd
}
