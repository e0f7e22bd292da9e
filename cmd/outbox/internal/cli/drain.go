package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/pgstream"
)

func newDrain(a *app) *cobra.Command {
	var f relayFlags
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "drain",
		Short: "Deliver events until none is left, then exit",
		Long: `Like relay, but exits with 0 as soon as no event is due, claimed or waiting for a retry. It
leaves events that are scheduled for later, dead or held, and those that wait behind such an
event. At the end it prints how many events it delivered and how many are left, by state: to
standard output, or to standard error if the events go to standard output.

It waits for a destination that accepts nothing while there are events for it; --timeout
limits that. When the time is over, or on SIGTERM or SIGINT, it exits with 1 and says what is
left, and why. It also exits with 1 if the table has rows that no relay ever takes; outbox
doctor shows how to find them.`,
		Example: "  outbox drain --from postgres://localhost/shop --to file:events.jsonl --timeout 10m",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if timeout < 0 {
				return usagef("--timeout is negative")
			}
			refused, count := &refusal{}, &deliveries{}
			f.hooks = []any{refused, count}
			return a.relay(cmd, &f, func(ctx context.Context, on *running) error {
				ctx, refused.stop = context.WithCancelCause(ctx)
				defer refused.stop(nil)
				if timeout > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, timeout)
					defer cancel()
				}
				if err := on.relay.Drain(ctx); err != nil {
					return undrained(ctx, err, on.relay, on.from.store)
				}
				return a.printDrained(ctx, on, count.n.Load())
			})
		},
	}
	f.flags(cmd)
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "exit with 1 if events are left after this time (default: never)")
	return cmd
}

// refusal ends a drain of a stream that needs a repair. A relay waits for the repair; a drain does not.
type refusal struct{ stop context.CancelCauseFunc }

func (r *refusal) OnStoreError(err error) {
	if errors.Is(err, pgstream.ErrRestored) {
		r.stop(err)
	}
}

// countTime bounds the final count of a drain.
const countTime = 5 * time.Second

// undrained says what is left when a drain was stopped before its end.
func undrained(ctx context.Context, err error, relay *outbox.Relay, store outbox.Store) error {
	if cause := context.Cause(ctx); errors.Is(cause, pgstream.ErrRestored) {
		return &usageError{cause} // as at the start
	}
	var why string
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		why = "the time is over"
	case errors.Is(err, context.Canceled):
		why = "interrupted"
	default:
		return err
	}
	counting, cancel := context.WithTimeout(context.WithoutCancel(ctx), countTime)
	defer cancel()
	left := "the events that are left cannot be counted"
	if stats, err := store.Stats(counting); err == nil {
		left = plural(stats.Due+stats.Retrying+stats.Held, "event") + " left"
	}
	reasons := []string{why + ": " + left}
	for _, route := range relay.Routes() {
		if !route.Open {
			reasons = append(reasons, fmt.Sprintf("%s is closed: %s", route.Name(), route.Error))
		}
	}
	return errors.New(strings.Join(reasons, "; "))
}
