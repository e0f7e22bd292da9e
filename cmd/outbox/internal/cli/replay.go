package cli

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/packfinderz/outbox/pgstream"
)

// replayFlags say which events, as text.
type replayFlags struct {
	source
	id, since, until, rate string
}

func newReplay(a *app) *cobra.Command {
	var f replayFlags
	var replay pgstream.Replay
	cmd := &cobra.Command{
		Use:   "replay",
		Short: "Publish delivered events of a stream again",
		Long: `Has the relay of a subscription publish delivered events again, with the same ids and in
order. The cursors do not move, and new events do not wait behind replayed ones. The
conditions narrow each other; at least one is needed. Events are there until their slot
of the ring is emptied.`,
		Example: `  outbox replay --subscription billing --since 2030-01-31T12:00:00Z --until 2030-01-31T13:00:00Z --rate 100/s
  outbox replay --key order-42 --dry-run`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.parse(&replay); err != nil {
				return err
			}
			ctx := cmd.Context()
			return f.onStream(ctx, func(stream pgstream.Stream, pool *pgxpool.Pool) error {
				return a.replay(ctx, stream, pool, replay)
			})
		},
	}
	f.databaseFlags(cmd)
	s := cmd.Flags()
	s.StringVar(&replay.Subscription, "subscription", pgstream.DefaultSubscription, "`name` of the subscription whose relay publishes them")
	s.StringVar(&f.id, "id", "", "only the event of this `UUID`")
	s.StringVar(&f.since, "since", "", "only events emitted at or after this `time`, such as 2030-01-31T12:00:00Z")
	s.StringVar(&f.until, "until", "", "only events emitted before this `time`")
	s.StringVar(&replay.Key, "key", "", "only events of this `key`")
	s.StringVar(&replay.Type, "type", "", "only events of this `type`")
	s.StringVar(&replay.Topic, "topic", "", "only events of this `topic`")
	s.StringVar(&f.rate, "rate", "", "events per second, such as `100/s` (default: all at once)")
	s.BoolVar(&replay.DryRun, "dry-run", false, "count only")
	return cmd
}

func (f *replayFlags) parse(replay *pgstream.Replay) (err error) {
	if f.id == "" && f.since == "" && f.until == "" && replay.Key == "" && replay.Type == "" && replay.Topic == "" {
		return usagef("say what to replay: --id, --since, --until, --key, --type or --topic")
	}
	if replay.ID, err = parseUUID(f.id); err != nil {
		return usagef("--id: %w", err)
	}
	if replay.Since, err = parseTime("since", f.since); err != nil {
		return err
	}
	if replay.Until, err = parseTime("until", f.until); err != nil {
		return err
	}
	if f.since != "" && f.until != "" && !replay.Since.Before(replay.Until) {
		return usagef("--until is not after --since")
	}
	if f.rate != "" {
		replay.Rate, err = strconv.Atoi(strings.TrimSuffix(f.rate, "/s"))
		if err != nil || replay.Rate < 1 {
			return usagef("--rate is %q; it looks like 100/s", f.rate)
		}
	}
	return nil
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

func (a *app) replay(ctx context.Context, stream pgstream.Stream, pool *pgxpool.Pool, replay pgstream.Replay) error {
	progress, end, err := a.bar(replay.DryRun, func() (int64, error) {
		count := replay
		count.DryRun = true
		return stream.Replay(ctx, pool, count)
	})
	if err != nil {
		return err
	}
	replay.Progress = progress
	events, err := stream.Replay(ctx, pool, replay)
	end()
	if err != nil {
		return err
	}
	if !replay.DryRun {
		_ = pgstream.Wake(ctx, pool, stream) // if it fails relays poll
	}
	switch {
	case a.json:
		return a.printJSON(map[string]any{"events": events, "dryRun": replay.DryRun})
	case replay.DryRun:
		return a.printf("would replay %s\n", plural(events, "event"))
	}
	return a.printf("replaying %s through the relay of subscription %s\n", plural(events, "event"), replay.Subscription)
}
