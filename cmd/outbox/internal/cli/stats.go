package cli

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/packfinderz/outbox/ops"
	"github.com/packfinderz/outbox/pgstream"
)

func newStats(a *app) *cobra.Command {
	var from source
	var subscription string
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Count the events by state",
		Long: `Counts the events by state, and the backlog by topic, type and tenant. For each subscription of
a stream it also shows how far each shard is behind and which relay owns it, the relays, and
the server's longest-running transaction.`,
		Example: "  outbox stats --from postgres://localhost/shop --subscription billing",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			return from.connected(ctx, 1, func(found place, pool *pgxpool.Pool) error {
				list, err := outboxes(ctx, found, pool, subscription)
				if err != nil {
					return err
				}
				all := make([]*ops.Stats, len(list))
				for i, one := range list {
					if all[i], err = one.Stats(ctx); err != nil {
						return err
					}
				}
				return a.printStats(all)
			})
		},
	}
	from.flags(cmd)
	cmd.Flags().StringVar(&subscription, "subscription", "", "`name` of one subscription of a stream (default: all)")
	return cmd
}

func (a *app) printStats(all []*ops.Stats) error {
	if a.json {
		return printEach(a, all, nil)
	}
	if len(all) == 0 {
		return a.printf("there is no subscription, so nothing is delivered; make one with outbox subscriptions create\n")
	}
	return a.columns(func(w io.Writer) {
		for i, stats := range all {
			if i > 0 {
				row(w)
			}
			if stats.Totals != nil {
				writeTotals(w, stats)
			} else {
				writeLag(w, stats)
			}
		}
	})
}

func writeTotals(w io.Writer, s *ops.Stats) {
	strays := "not counted; outbox doctor says why"
	if s.Strays != nil {
		strays = strconv.FormatInt(*s.Strays, 10)
	}
	t := s.Totals
	row(w, "layout", t.Layout)
	row(w, "due", t.Due)
	row(w, "scheduled", t.Scheduled)
	row(w, "retrying", t.Retrying)
	row(w, "held", t.Held)
	row(w, "dead", t.Dead)
	row(w, "at their maximum of attempts", t.Exhausted)
	row(w, "in no known state", strays)
	row(w, "oldest undelivered", seconds(t.OldestSeconds))
	if delivered := s.Overview.Delivered; delivered != nil {
		row(w, "delivered in the last minute", number(*delivered))
	}
	writeShares(w, s.Overview)
	row(w)
	writeRelays(w, s.Overview)
}

func writeLag(w io.Writer, s *ops.Stats) {
	var events ops.Count
	var oldest float64
	line := func(format string, args ...any) { row(w, fmt.Sprintf(format, args...)) }
	line("subscription %s", s.Subscription)
	row(w, "SHARD", "UNREAD", "OLDEST", "WINDOW", "RELAY", "LEASE")
	for i := range s.Shards {
		sh := &s.Shards[i]
		unread := ops.Count{N: sh.Events, AtLeast: sh.Events >= pgstream.LagLimit}
		row(w, sh.Shard, number(unread), seconds(sh.Seconds), seconds(sh.WindowSeconds), dash(sh.Owner), seconds(sh.LeaseSeconds))
		events = ops.Count{N: events.N + unread.N, AtLeast: events.AtLeast || unread.AtLeast}
		oldest = max(oldest, sh.Seconds)
	}
	row(w, "all", number(events), seconds(oldest))
	line("parked: %d to retry, %d waiting behind one, %d stopped, %d dead, %d held",
		s.Parked["retry"], s.Parked["waiting"], s.Parked["stopped"], s.Parked["dead"], s.Parked["held"])
	writeStopped(w, s.Overview)
	for i := range s.Relays {
		relay := &s.Relays[i]
		waits := ""
		if relay.Waits {
			waits = "; " + waitsForDestination
		}
		line("relay %s: %s, process %d, since %s%s", relay.Worker, relay.Host, relay.PID, relay.StartedAt.Format(time.RFC3339), waits)
	}
	if len(s.Relays) == 0 {
		line("no relay serves it")
	}
	writeTransaction(w, s.OldestTransaction)
	writeShares(w, s.Overview)
}

// seconds formats a time for people, to a tenth of a second below a minute.
func seconds(s float64) string {
	if s <= 0 {
		return "-"
	}
	d := time.Duration(s * float64(time.Second))
	if d < time.Minute {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
