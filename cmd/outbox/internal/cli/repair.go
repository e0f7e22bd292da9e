package cli

import (
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/packfinderz/outbox/pgstream"
)

func newRepair(a *app) *cobra.Command {
	var from source
	var options pgstream.RepairOptions
	cmd := &cobra.Command{
		Use:   "repair",
		Short: "Repair a stream that was restored from a dump",
		Long: `The cursors of a stream hold snapshots of their server. After a restore from a dump, a server
that went back in time, or a sequence that was set back, they mean nothing and relays refuse to
start. Repair parks the events that no cursor has settled, and those in doubt, due now and in
order, and lets every subscription continue from there. Events in doubt may be delivered
twice; none is lost. Producers may write meanwhile. A stream that needs no repair is not
changed. The role must own the tables.

With --subscription, relays of the other subscriptions are refused until these are repaired,
too. None of their events is lost.`,
		Example: "  outbox repair --from postgres://localhost/shop --dry-run\n  outbox repair --from postgres://localhost/shop",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			return from.onStream(ctx, func(stream pgstream.Stream, pool *pgxpool.Pool) error {
				repaired, err := stream.Repair(ctx, pool, options)
				switch {
				case err != nil:
					return err
				case a.json:
					return a.printJSON(repaired)
				}
				return a.printRepaired(&repaired)
			})
		},
	}
	from.databaseFlags(cmd)
	f := cmd.Flags()
	listFlag(f, &options.Subscriptions, "subscription", "`name` of a subscription to repair; may be repeated (default: all)")
	f.BoolVar(&options.DryRun, "dry-run", false, "count only")
	return cmd
}

func (a *app) printRepaired(repaired *pgstream.Repaired) error {
	if len(repaired.BySubscription) == 0 {
		return a.printf("nothing to repair\n")
	}
	head := "repaired %s; parked %s, due now\n"
	if repaired.DryRun {
		head = "would repair %s and park %s, due now\n"
	}
	parked := repaired.Events
	for _, sub := range repaired.BySubscription {
		if sub.Waits {
			parked -= sub.Unread + sub.Doubtful
		}
	}
	if err := a.printf(head, plural(int64(repaired.Subscriptions), "subscription"), plural(parked, "undelivered event")); err != nil {
		return err
	}
	for _, sub := range repaired.BySubscription {
		if len(repaired.BySubscription) == 1 && sub.Doubtful == 0 && sub.Cursors == 0 && !sub.Waited && !repaired.DryRun {
			break
		}
		if sub.Waited && !sub.Waits {
			if err := a.printf("  %s: was put right by an earlier repair, and goes on\n", printable(sub.Name)); err != nil {
				return err
			}
			continue
		}
		waits := ""
		if sub.Waits {
			waits = "; refused until it is repaired, too"
		}
		var err error
		if sub.Cursors == 0 || sub.Unread+sub.Doubtful > 0 {
			err = a.printf("  %s: %s not settled, %s in doubt%s\n", printable(sub.Name), plural(sub.Unread, "event"), plural(sub.Doubtful, "event"), waits)
		}
		if err == nil && sub.Cursors > 0 {
			err = a.printf("  %s: %s missing; from the oldest event on they read %s\n",
				printable(sub.Name), plural(int64(sub.Cursors), "cursor"), plural(sub.Reread, "event"))
		}
		if err != nil {
			return err
		}
	}
	if repaired.Owner != "" {
		return a.printf("only the owner of the tables can repair them: the role %s\n", printable(repaired.Owner))
	}
	return nil
}
