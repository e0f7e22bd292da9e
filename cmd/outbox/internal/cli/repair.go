package cli

import (
	"fmt"
	"strings"

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
				if err != nil {
					return err
				}
				return a.answer(repaired, "%s", repairedText(&repaired))
			})
		},
	}
	from.databaseFlags(cmd)
	f := cmd.Flags()
	listFlag(f, &options.Subscriptions, "subscription", "`name` of a subscription to repair; may be repeated (default: all)")
	f.BoolVar(&options.DryRun, "dry-run", false, "count only")
	return cmd
}

func repairedText(repaired *pgstream.Repaired) string {
	if len(repaired.BySubscription) == 0 {
		return "nothing to repair\n"
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
	var b strings.Builder
	fmt.Fprintf(&b, head, plural(int64(repaired.Subscriptions), "subscription"), plural(parked, "undelivered event"))
	for _, sub := range repaired.BySubscription {
		if len(repaired.BySubscription) == 1 && sub.Doubtful == 0 && sub.Cursors == 0 && !sub.Waited && !repaired.DryRun {
			break
		}
		name, waits := printable(sub.Name), ""
		if sub.Waited && !sub.Waits {
			fmt.Fprintf(&b, "  %s: was put right by an earlier repair, and goes on\n", name)
			continue
		}
		if sub.Waits {
			waits = "; refused until it is repaired, too"
		}
		if sub.Cursors == 0 || sub.Unread+sub.Doubtful > 0 {
			fmt.Fprintf(&b, "  %s: %s not settled, %s in doubt%s\n", name, plural(sub.Unread, "event"), plural(sub.Doubtful, "event"), waits)
		}
		if sub.Cursors > 0 {
			fmt.Fprintf(&b, "  %s: %s missing; from the oldest event on they read %s\n",
				name, plural(int64(sub.Cursors), "cursor"), plural(sub.Reread, "event"))
		}
	}
	if repaired.Owner != "" {
		fmt.Fprintf(&b, "only the owner of the tables can repair them: the role %s\n", printable(repaired.Owner))
	}
	return b.String()
}
