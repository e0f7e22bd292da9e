package cli

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/ops"
	"github.com/packfinderz/outbox/pgstream"
)

// defaultRetention is how long delivered events are kept unless said otherwise.
const defaultRetention = 30 * 24 * time.Hour

func newPurge(a *app) *cobra.Command {
	var from operated
	var purge outbox.Purge
	var change ops.Change
	cmd := &cobra.Command{
		Use:   "purge",
		Short: "Delete delivered events that are older than the retention",
		Long: `Deletes delivered events older than --retention, in small steps. It never deletes events that
are undelivered or held. With --dlq-retention it also deletes dead letters older than that,
with their events.

A stream is emptied by whole slots, each when all its events are older than --retention and
settled by every subscription. Each subscription has its own dead events: --dlq-retention
deletes those of --subscription.`,
		Example: "  outbox purge --from postgres://localhost/shop --retention 720h --dry-run",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if purge.Retention <= 0 {
				return usagef("--retention is %s; it must be positive", purge.Retention)
			}
			if change.BatchSize < 1 {
				return usagef("--batch-size is %d; it must be at least 1", change.BatchSize)
			}
			return a.purge(cmd.Context(), &from, purge, change)
		},
	}
	from.changeFlags(cmd, &change)
	s := cmd.Flags()
	s.DurationVar(&purge.Retention, "retention", defaultRetention, "how long delivered events are kept")
	s.DurationVar(&purge.DeadLetterRetention, "dlq-retention", 0, "how long dead letters are kept (default: forever)")
	s.IntVar(&change.BatchSize, "batch-size", 1000, "rows per step")
	return cmd
}

func (a *app) purge(ctx context.Context, from *operated, purge outbox.Purge, change ops.Change) error {
	change.Actor = from.actor()
	change.Logger = slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if purge.DeadLetterRetention == 0 {
		if err := from.anySubscription(ctx); err != nil {
			return err
		}
	}
	return from.operate(ctx, func(events *ops.Outbox) error {
		result, err := withBar(ctx, a.Err, change, func(ctx context.Context, change ops.Change) (*ops.Result, error) {
			return events.Purge(ctx, purge, change)
		})
		if err != nil {
			return err
		}
		if a.json {
			return errors.Join(a.printBrief(result), a.finish(result, "the same command"))
		}
		return a.printResult(result, "deleted", "would delete", "the same command")
	})
}

// anySubscription picks any subscription of a stream if none is named and the default one was dropped. Slots belong
// to all subscriptions; dead events do not.
func (o *operated) anySubscription(ctx context.Context) error {
	if o.subscription != "" {
		return nil
	}
	return o.connected(ctx, 1, func(found place, pool *pgxpool.Pool) error {
		names, err := found.subscriptions(ctx, pool)
		if len(names) > 0 && !slices.Contains(names, pgstream.DefaultSubscription) {
			o.subscription = names[0]
		}
		return err
	})
}
