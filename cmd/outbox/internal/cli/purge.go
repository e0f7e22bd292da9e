package cli

import (
	"context"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/packfinderz/outbox"
)

// defaultRetention is how long delivered events are kept unless said otherwise.
const defaultRetention = 30 * 24 * time.Hour

func newPurge(a *app) *cobra.Command {
	var from source
	var purge outbox.Purge
	cmd := &cobra.Command{
		Use:   "purge",
		Short: "Delete delivered events that are older than the retention",
		Long: `Deletes delivered events older than --retention, in small steps. What is undelivered, held
or dead is never touched. With --dlq-retention, dead letters older than that are deleted,
too, and with them their events.

A stream is emptied slot by slot: one whose events are all older than --retention and
settled by every subscription.`,
		Example: "  outbox purge --from postgres://localhost/shop --retention 720h --dry-run",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if purge.Retention <= 0 {
				return usagef("--retention is %s; it must be positive", purge.Retention)
			}
			if purge.BatchSize < 1 {
				return usagef("--batch-size is %d; it must be at least 1", purge.BatchSize)
			}
			return a.purge(cmd.Context(), &from, purge)
		},
	}
	from.flags(cmd)
	s := cmd.Flags()
	s.DurationVar(&purge.Retention, "retention", defaultRetention, "how long delivered events are kept")
	s.DurationVar(&purge.DeadLetterRetention, "dlq-retention", 0, "how long dead letters are kept (default: for ever)")
	s.IntVar(&purge.BatchSize, "batch-size", 1000, "rows per step")
	s.BoolVar(&purge.DryRun, "dry-run", false, "count only")
	return cmd
}

func (a *app) purge(ctx context.Context, from *source, purge outbox.Purge) error {
	log := slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	found, err := from.open(ctx, storeOptions{purgesDead: purge.DeadLetterRetention > 0, upkeep: true, log: log})
	if err != nil {
		return err
	}
	defer found.close()
	progress, end, err := a.bar(purge.DryRun, func() (int64, error) {
		count := purge
		count.DryRun = true
		return found.store.Purge(ctx, count)
	})
	if err != nil {
		return classify(err, found.target.ifMissing())
	}
	purge.Progress = progress
	deleted, err := found.store.Purge(ctx, purge)
	end()
	if err != nil {
		return classify(err, found.target.ifMissing())
	}
	switch {
	case a.json:
		return a.printJSON(map[string]any{"events": deleted, "dryRun": purge.DryRun})
	case purge.DryRun:
		return a.printf("would delete %s\n", plural(deleted, "event"))
	}
	return a.printf("deleted %s\n", plural(deleted, "event"))
}
