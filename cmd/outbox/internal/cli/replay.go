package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/packfinderz/outbox/cmd/outbox/internal/dest"
	"github.com/packfinderz/outbox/ops"
	"github.com/packfinderz/outbox/pgstream"
)

type replayFlags struct {
	operated
	filterFlags
	id, rate, to string
	replay       ops.Replay
}

func newReplay(a *app) *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay",
		Short: "Publish delivered events again",
		Long: `Publishes delivered events again, with the same ids and in order. An event has to match all
conditions; at least one is needed.

On a stream it parks copies for the subscription's relay, which publishes them. The cursors
do not move, and new events do not wait behind replayed ones. Events can be replayed until
their slot of the ring is emptied. The events of a queue table are published by this command,
to --to; their rows do not change.`,
		Example: `  outbox replay --subscription billing --since 2030-01-31T12:00:00Z --until 2030-01-31T13:00:00Z --rate 100/s
  outbox replay --key order-42 --dry-run
  outbox replay --layout modkit --topic orders --since 2030-01-31T12:00:00Z --to nats://localhost:4222`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter, err := f.parse()
			if err != nil {
				return err
			}
			return f.operate(cmd.Context(), func(events *ops.Outbox) error { return a.replay(cmd.Context(), events, &f, filter) })
		},
	}
	f.changeFlags(cmd, &f.replay.Change)
	f.filterFlags.flags(cmd)
	s := cmd.Flags()
	s.StringVar(&f.id, "id", "", "only the event of this `UUID`")
	s.StringVar(&f.rate, "rate", "", "events per second, such as `100/s` (default: all at once)")
	s.StringVar(&f.to, "to", "", "destination `URL` of events of a queue table (or OUTBOX_TO)")
	s.StringVar(&f.replay.DefaultTopic, "topic-default", "", "`topic` of events of a queue table that have none")
	return cmd
}

func (f *replayFlags) parse() (ops.Filter, error) {
	var ids []string
	if f.id != "" {
		if _, err := parseUUID(f.id); err != nil {
			return ops.Filter{}, usagef("--id: %w", err)
		}
		ids = append(ids, f.id)
	}
	filter, err := f.filterFlags.parse(ids)
	if err != nil {
		return filter, err
	}
	if filter.Empty() {
		return filter, usagef("say what to replay: --id, --since, --until, --key, --type or --topic")
	}
	if f.rate != "" {
		f.replay.Rate, err = strconv.Atoi(strings.TrimSuffix(f.rate, "/s"))
		if err != nil || f.replay.Rate < 1 {
			return filter, usagef("--rate is %q; it looks like 100/s", f.rate)
		}
	}
	isStream := f.layout == pgstream.LayoutName
	if !isStream && f.to == "" {
		f.to = os.Getenv("OUTBOX_TO") // where the relay publishes, too
	}
	switch {
	case isStream && f.to != "":
		return filter, usagef("--to: a stream's relay publishes replayed events itself; leave it out")
	case !isStream && f.to == "" && !f.replay.DryRun:
		return filter, usagef("--to is missing: events of a queue table are published by this command; choose one of %s", dest.Names())
	}
	f.replay.Actor = f.actor()
	return filter, nil
}

// parseTime reads a flag that is a time; empty is none.
func parseTime(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, usagef("--%s is %q; it looks like 2030-01-31T12:00:00Z", flag, text)
	}
	return parsed, nil
}

func (a *app) replay(ctx context.Context, events *ops.Outbox, f *replayFlags, filter ops.Filter) error {
	is := events.Describe()
	// A stream's events are not replayed in the order of their times, so no time says where to go on.
	done, goOn := "replaying", "the same command, which replays these once more"
	if !is.RelayReplays && !f.replay.DryRun {
		destination, err := dest.Open(f.to, a.Out)
		if err != nil {
			return &usageError{err}
		}
		defer func() { _ = destination.Close() }() // every event was acknowledged, or the replay has failed
		f.replay.Publisher, done, goOn = destination, "replayed", "--since with the time of the last event that arrived"
	}
	screen := a.Err
	if f.to == "stdout:" && isTerminal(a.Out) {
		screen = io.Discard // the events are on it
	}
	result, err := withBar(ctx, screen, f.replay.Change, func(ctx context.Context, change ops.Change) (*ops.Result, error) {
		replay := f.replay
		replay.Change = change
		if change.DryRun {
			replay.Publisher = nil
		}
		return events.Replay(ctx, filter, replay)
	})
	if err != nil && (result == nil || result.Events == 0) {
		return err
	}
	switch {
	case a.json:
		err = errors.Join(a.printBrief(result), err)
	case result.DryRun:
		err = errors.Join(a.printf("would replay %s\n", atLeast(result.Events, result.AtLeast)), err)
	case is.RelayReplays:
		err = errors.Join(a.printf("%s %s through the relay of subscription %s\n", done, plural(result.Events, "event"), is.Subscription), err)
	case f.to != "stdout:": // there the events are the answer
		err = errors.Join(a.printf("%s %s\n", done, plural(result.Events, "event")), err)
	}
	return errors.Join(err, a.finish(result, goOn))
}
