package cli

import (
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/packfinderz/outbox/pgstream"
)

func newRepair(a *app) *cobra.Command {
	var from source
	cmd := &cobra.Command{
		Use:   "repair",
		Short: "Make a stream usable that was restored from a dump",
		Long: `The cursors of a stream hold snapshots of the server they were taken on. After a dump and
restore, or a server that went back in time, relays refuse to start. This parks what was
not delivered, due now and in order, and lets every subscription go on from there. Run it
before producers write again. A stream that needs no repair is left as it is.`,
		Example: "  outbox repair --from postgres://localhost/shop",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			return from.onStream(ctx, func(stream pgstream.Stream, pool *pgxpool.Pool) error {
				repaired, err := stream.Repair(ctx, pool)
				switch {
				case err != nil:
					return err
				case a.json:
					return a.printJSON(repaired)
				case repaired.Subscriptions == 0:
					return a.printf("nothing to repair\n")
				}
				return a.printf("repaired %s; parked %s, due now\n",
					plural(int64(repaired.Subscriptions), "subscription"), plural(repaired.Events, "undelivered event"))
			})
		},
	}
	from.databaseFlags(cmd)
	return cmd
}
