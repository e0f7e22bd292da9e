package cli

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/packfinderz/outbox/ops"
	"github.com/packfinderz/outbox/pgstream"
)

const topEvery = time.Second

func newTop(a *app) *cobra.Command {
	var from operated
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch the backlog, the relays and what is dead",
		Long: `Shows what waits, what failed, what was delivered and which relays are alive, and refreshes
every second. Press Ctrl-C, or q and Enter, to stop. If the output is not a terminal, it
prints once.`,
		Example: "  outbox top --from postgres://localhost/shop",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return from.operate(cmd.Context(), func(events *ops.Outbox) error { return a.top(cmd.Context(), events) })
		},
	}
	from.flags(cmd)
	return cmd
}

func (a *app) top(ctx context.Context, events *ops.Outbox) error {
	if a.json || !isTerminal(a.Out) {
		now, err := events.Overview(ctx)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(now)
		}
		return a.printf("%s", overviewText(events.Describe(), now))
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() { // ends with the program
		for keys := bufio.NewScanner(a.In); keys.Scan(); {
			if strings.HasPrefix(keys.Text(), "q") {
				stop()
				return
			}
		}
	}()
	ticker := time.NewTicker(topEvery)
	defer ticker.Stop()
	for {
		now, err := events.Overview(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		// Move home, clear the rest of each line, and clear the rest of the screen.
		text := strings.ReplaceAll(overviewText(events.Describe(), now), "\n", "\x1b[K\n")
		if err := a.printf("\x1b[H%s\x1b[J", text); err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func overviewText(is ops.Description, o *ops.Overview) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s  %s\n\n", printable(is.Name), o.At.Format(time.RFC3339))
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row(w, "backlog", number(o.Backlog))
	row(w, "oldest", seconds(o.OldestSeconds))
	for _, state := range is.States {
		row(w, state, number(o.ByState[state]))
	}
	if o.Delivered != nil {
		row(w, "delivered in the last minute", number(*o.Delivered))
	}
	if o.Failed != nil {
		row(w, "failed in the last minute", number(*o.Failed))
	}
	_ = w.Flush() // into memory
	writeStopped(&b, o)
	writeShares(&b, o)
	_, _ = fmt.Fprintln(&b)
	writeRelays(&b, o)
	writeTransaction(&b, o.OldestTransaction)
	return b.String()
}

// writeTransaction names the server's longest-running transaction, which holds back vacuum.
func writeTransaction(b io.Writer, oldest *pgstream.Transaction) {
	if oldest != nil {
		_, _ = fmt.Fprintf(b, "oldest transaction: process %d of the server, %s, %s, application %q\n",
			oldest.PID, seconds(oldest.Seconds), oldest.State, oldest.Application)
	}
}

// writeStopped names the topics that accept nothing.
func writeStopped(b io.Writer, o *ops.Overview) {
	for _, topic := range o.Stopped {
		_, _ = fmt.Fprintf(b, "topic %s is closed: %s stopped, the oldest %s old: %s\n",
			dash(short(topic.Topic, 60)), plural(topic.Count, "event"), seconds(topic.OldestSeconds), short(topic.LastError, 200))
	}
}

const waitsForDestination = "waits for its destination"

func writeRelays(b io.Writer, o *ops.Overview) {
	switch {
	case o.RelaysUnknown != "":
		_, _ = fmt.Fprintln(b, o.RelaysUnknown)
	case len(o.Relays) == 0:
		_, _ = fmt.Fprintln(b, "no relay is alive")
	}
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, relay := range o.Relays {
		if relay.Waits {
			row(w, "relay "+relay.Worker, dash(relay.Host), waitsForDestination)
			continue
		}
		row(w, "relay "+relay.Worker, dash(relay.Host), fmt.Sprintf("holds %d", relay.Holds), "lease "+seconds(relay.LeaseSeconds))
	}
	_ = w.Flush() // what fails shows with the next line
}

func writeShares(b io.Writer, o *ops.Overview) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, part := range []struct {
		by     string
		shares []ops.Share
	}{{"topic", o.ByTopic}, {"type", o.ByType}, {"tenant", o.ByTenant}} {
		if len(part.shares) == 0 || len(part.shares) == 1 && part.shares[0].Name == "" {
			continue
		}
		title := "BY " + strings.ToUpper(part.by)
		if o.Sampled {
			title += " (of a sample)"
		}
		row(w)
		row(w, title, "EVENTS", "OLDEST")
		for _, share := range part.shares {
			row(w, dash(short(share.Name, 60)), share.Count, seconds(share.OldestSeconds))
		}
	}
	_ = w.Flush() // what fails shows with the next line
}

// number formats a count: ~ is an estimate, + is at least.
func number(c ops.Count) string {
	switch {
	case c.Estimate:
		return fmt.Sprintf("~%d", c.N)
	case c.AtLeast:
		return fmt.Sprintf("%d+", c.N)
	}
	return strconv.FormatInt(c.N, 10)
}
