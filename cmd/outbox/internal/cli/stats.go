package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/ops"
	"github.com/packfinderz/outbox/pgstream"
)

// report is how the events of a table or a subscription are doing. As JSON it is itself.
type report interface {
	// write writes it as columns for people. What fails shows when the columns are flushed.
	write(columns io.Writer)
}

func newStats(a *app) *cobra.Command {
	var from source
	var subscription string
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Show what waits, what failed, and why",
		Long: `Shows, for every subscription of a stream or for one of them, how far each shard is behind
and which relay has it, the parked events by state, the relays, and the transaction of
the server that has been running longest. For a queue table it counts the events. The
backlog is divided by topic, type and tenant.`,
		Example: "  outbox stats --from postgres://localhost/shop --subscription billing",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			found, conn, err := from.locate()
			if err != nil {
				return err
			}
			reports, err := found.stats(cmd.Context(), conn, subscription)
			if err != nil {
				return err
			}
			return a.printReports(reports)
		},
	}
	from.flags(cmd)
	cmd.Flags().StringVar(&subscription, "subscription", "", "`name` of one subscription of a stream (default: all)")
	return cmd
}

func (a *app) printReports(reports []report) error {
	if len(reports) == 0 && !a.json {
		return a.printf("there is no subscription: nothing is delivered; make one with outbox subscriptions create\n")
	}
	columns := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	for i, report := range reports {
		if a.json {
			if err := a.printJSON(report); err != nil {
				return err
			}
			continue
		}
		if i > 0 {
			_, _ = fmt.Fprintln(columns)
		}
		report.write(columns)
	}
	if err := columns.Flush(); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}

// tableReport are the numbers of a queue table.
type tableReport struct {
	Layout    string `json:"layout"`
	Due       int64  `json:"due"`
	Scheduled int64  `json:"scheduled"`
	Retrying  int64  `json:"retrying"`
	Held      int64  `json:"held"`
	Dead      int64  `json:"dead"`
	Exhausted int64  `json:"exhausted"`
	// Strays is null where they were not counted.
	Strays        *int64  `json:"strays"`
	OldestSeconds float64 `json:"oldestSeconds"`
	// Overview is the same in more detail, with counts that stop earlier.
	Overview *ops.Overview `json:"overview"`
}

func newTableReport(layout string, stats outbox.Stats, overview *ops.Overview) tableReport {
	report := tableReport{
		Overview: overview,
		Layout:   layout, Due: stats.Due, Scheduled: stats.Scheduled, Retrying: stats.Retrying, Held: stats.Held,
		Dead: stats.Dead, Exhausted: stats.Exhausted, OldestSeconds: stats.OldestAge.Seconds(),
	}
	if stats.Strays != outbox.NotCounted {
		report.Strays = &stats.Strays
	}
	return report
}

func (r tableReport) write(columns io.Writer) {
	strays := "not counted; outbox doctor says why"
	if r.Strays != nil {
		strays = strconv.FormatInt(*r.Strays, 10)
	}
	for _, row := range []struct {
		name  string
		value any
	}{
		{"layout", r.Layout}, {"due", r.Due}, {"scheduled", r.Scheduled}, {"retrying", r.Retrying}, {"held", r.Held},
		{"dead", r.Dead}, {"at their maximum of attempts", r.Exhausted}, {"in no known state", strays}, {"oldest undelivered", seconds(r.OldestSeconds)},
	} {
		_, _ = fmt.Fprintf(columns, "%s\t%v\n", row.name, row.value)
	}
	if delivered := r.Overview.Delivered; delivered != nil {
		_, _ = fmt.Fprintf(columns, "delivered in the last minute\t%s\n", number(*delivered))
	}
	writeShares(columns, r.Overview)
	_, _ = fmt.Fprintln(columns)
	writeRelays(columns, r.Overview)
}

// lagReport is how far a subscription is behind.
type lagReport struct {
	*pgstream.Lag
	// Overview divides the backlog.
	Overview *ops.Overview `json:"overview"`
}

func (r lagReport) write(columns io.Writer) {
	var b strings.Builder
	var events ops.Count
	var oldest float64
	fmt.Fprintf(&b, "subscription %s\n", printable(r.Subscription))
	fmt.Fprint(&b, "SHARD\tUNREAD\tOLDEST\tWINDOW\tRELAY\tLEASE\n")
	for i := range r.Shards {
		sh := &r.Shards[i]
		owner := sh.Owner
		if owner == "" {
			owner = "-"
		}
		unread := ops.Count{N: sh.Events, AtLeast: sh.Events >= pgstream.LagLimit}
		fmt.Fprintf(&b, "%d\t%s\t%s\t%s\t%s\t%s\n", sh.Shard, number(unread), seconds(sh.Seconds), seconds(sh.WindowSeconds), owner, seconds(sh.LeaseSeconds))
		events = ops.Count{N: events.N + unread.N, AtLeast: events.AtLeast || unread.AtLeast}
		oldest = max(oldest, sh.Seconds)
	}
	fmt.Fprintf(&b, "all\t%s\t%s\n", number(events), seconds(oldest))
	fmt.Fprintf(&b, "parked: %d to retry, %d waiting behind one, %d stopped, %d dead, %d held\n",
		r.Parked["retry"], r.Parked["waiting"], r.Parked["stopped"], r.Parked["dead"], r.Parked["held"])
	writeStopped(&b, r.Overview)
	for i := range r.Relays {
		relay := &r.Relays[i]
		waits := ""
		if relay.Waits {
			waits = "; " + waitsForDestination
		}
		fmt.Fprintf(&b, "relay %s: %s, process %d, since %s%s\n", relay.Worker, relay.Host, relay.PID, relay.StartedAt.Format(time.RFC3339), waits)
	}
	if len(r.Relays) == 0 {
		fmt.Fprint(&b, "no relay serves it\n")
	}
	if oldest := r.OldestTransaction; oldest != nil {
		fmt.Fprintf(&b, "oldest transaction: process %d of the server, %s, %s, application %q\n",
			oldest.PID, seconds(oldest.Seconds), oldest.State, oldest.Application)
	}
	writeShares(&b, r.Overview)
	_, _ = io.WriteString(columns, b.String())
}

// seconds is a time for people, to a tenth of a second below a minute.
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
