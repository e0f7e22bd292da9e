package cli

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/packfinderz/outbox"
)

// defaultRetention is how long delivered events are kept unless said otherwise.
const defaultRetention = 30 * 24 * time.Hour

func newPurge(a *app) *cobra.Command {
	f := relayFlags{concurrency: 1}
	var purge outbox.Purge
	cmd := &cobra.Command{
		Use:   "purge",
		Short: "Delete delivered events that are older than the retention",
		Long: `Deletes delivered events older than --retention, in small steps. What is undelivered, held
or dead is never touched. With --dlq-retention, dead letters older than that are deleted,
too, and with them their events.`,
		Example: "  outbox purge --from postgres://localhost/shop --layout modkit --retention 720h --dry-run",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if purge.Retention <= 0 {
				return usagef("--retention is %s; it must be positive", purge.Retention)
			}
			if purge.BatchSize < 1 {
				return usagef("--batch-size is %d; it must be at least 1", purge.BatchSize)
			}
			f.letterRetention = purge.DeadLetterRetention
			return a.purge(cmd, &f, purge)
		},
	}
	f.source.flags(cmd)
	s := cmd.Flags()
	s.DurationVar(&purge.Retention, "retention", defaultRetention, "how long delivered events are kept")
	s.DurationVar(&purge.DeadLetterRetention, "dlq-retention", 0, "how long dead letters are kept (default: for ever)")
	s.IntVar(&purge.BatchSize, "batch-size", 1000, "rows per step")
	s.BoolVar(&purge.DryRun, "dry-run", false, "count only")
	return cmd
}

func (a *app) purge(cmd *cobra.Command, f *relayFlags, purge outbox.Purge) error {
	ctx := cmd.Context()
	pool, store, err := f.open(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	if !purge.DryRun && isTerminal(a.Err) {
		count := purge
		count.DryRun = true
		total, err := store.Purge(ctx, count)
		if err != nil {
			return classify(err, "check --schema and --table")
		}
		purge.Progress = func(done int64) { a.progress(done, total) }
	}
	deleted, err := store.Purge(ctx, purge)
	if purge.Progress != nil {
		_, _ = fmt.Fprintln(a.Err) // the end of the bar
	}
	if err != nil {
		return classify(err, "check --schema and --table")
	}
	switch {
	case a.json:
		return a.printJSON(map[string]any{"events": deleted, "dryRun": purge.DryRun})
	case purge.DryRun:
		return a.printf("%d events would be deleted\n", deleted)
	}
	return a.printf("%d events deleted\n", deleted)
}

// progress draws a bar on the terminal.
func (a *app) progress(done, total int64) {
	const width = 40
	filled := width
	if total > 0 {
		filled = int(min(done*width/total, width))
	}
	_, _ = fmt.Fprintf(a.Err, "\r[%s%s] %d of %d", strings.Repeat("#", filled), strings.Repeat(".", width-filled), done, total)
}

// isTerminal reports whether a stream is a screen with somebody before it.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
