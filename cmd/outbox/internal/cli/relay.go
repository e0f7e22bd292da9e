package cli

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/cmd/outbox/internal/dest"
	"github.com/packfinderz/outbox/cmd/outbox/internal/monitor"
)

func newRelay(a *app) *cobra.Command {
	var f relayFlags
	cmd := &cobra.Command{
		Use:   "relay",
		Short: "Deliver events to a destination until stopped",
		Long: `Claims events, publishes them and settles what became of them, at least once each,
until it gets SIGTERM or SIGINT. Then it claims no more, finishes and settles what is
being published, gives the rest back and exits with 0.

On a stream it serves one subscription, which it shares with the other relays of that
subscription. Without --to it publishes where the subscription says.

Every flag can be set in the environment: --batch-size as OUTBOX_BATCH_SIZE, and so on.`,
		Example: `  outbox relay --from postgres://localhost/shop --to stdout:
  outbox relay --from postgres://localhost/shop --subscription billing --to file:billing.jsonl
  outbox relay --from postgres://localhost/shop --layout modkit --to stdout:`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.relay(cmd, &f, func(ctx context.Context, r *outbox.Relay, _ outbox.Store) error { return r.Run(ctx) })
		},
	}
	f.flags(cmd)
	cmd.Flags().StringVar(&f.consoleAt, "console", "", "serve the web console on this `address`, such as 127.0.0.1:8090")
	f.console.flags(cmd, "console-")
	return cmd
}

func (a *app) relay(cmd *cobra.Command, f *relayFlags, run func(context.Context, *outbox.Relay, outbox.Store) error) error {
	if err := fromEnvironment(cmd.Flags()); err != nil {
		return err
	}
	if err := f.check(cmd.Flags()); err != nil {
		return err
	}
	// Nobody can read on where standard output was closed: the relay ends.
	ctx, end := context.WithCancelCause(cmd.Context())
	defer end(nil)
	log, err := f.logger(a)
	if err != nil {
		return err
	}
	options, err := f.options(log)
	if err != nil {
		return err
	}
	from, err := f.open(ctx, options)
	if err != nil {
		return err
	}
	defer from.close()
	to := cmp.Or(f.to, from.destination)
	if to == "" {
		return usagef("--to is missing; choose one of %s", dest.Names())
	}
	destination, err := dest.Prepare(to, newPipe(a.Out, end))
	if err != nil {
		return &usageError{err}
	}
	metrics := monitor.New(from.store)
	relay, err := outbox.NewRelay(outbox.Config{
		Store: from.store, Publisher: destination, DefaultTopic: f.topicDefault, Topics: f.topics,
		BatchSize: f.batchSize, Concurrency: f.concurrency, Poll: f.poll,
		Listen: f.notify, PublishTimeout: f.publishTimeout,
		Retry:  outbox.RetryPolicy{Base: f.baseDelay, Max: f.maxDelay},
		Purge:  outbox.Purge{Retention: f.retention, DeadLetterRetention: f.letterRetention},
		Hooks:  []any{metrics},
		Logger: log,
	})
	if err != nil {
		return errors.Join(&usageError{err}, destination.Close())
	}
	if f.listen != "" {
		stop, err := metrics.Serve(f.listen, from.pool, relay, log)
		if err != nil {
			return errors.Join(&usageError{err}, destination.Close())
		}
		defer stop()
	}
	stopConsole := func() error { return nil }
	if f.consoleAt != "" {
		console, err := f.console.serve(ctx, &f.source, consoleOptions{
			listen: f.consoleAt, subscription: f.subscription, publisher: destination, defaultTopic: f.topicDefault, log: log,
		})
		if err != nil {
			return errors.Join(err, destination.Close())
		}
		log.Info("the console listens", "url", console.URL)
		stopConsole = console.close
	}
	host, _ := os.Hostname() // only for the log
	log.Info("relaying", "from", from.name(), "to", dest.Name(to), "worker_id", from.store.WorkerID(), "host", host, "pid", os.Getpid())
	if err := f.checkDestination(ctx, relay, log); err != nil {
		return errors.Join(err, stopConsole(), destination.Close())
	}
	if warner, ok := destination.(dest.Warner); ok {
		for _, text := range warner.Warnings(ctx, slices.Concat(f.topics, []string{f.topicDefault})...) {
			log.Warn(text)
		}
	}
	// The console may be replaying to the destination.
	err = run(ctx, relay, from.store)
	if cause := context.Cause(ctx); errors.Is(cause, errNoReader) {
		err = cause
	}
	return errors.Join(err, stopConsole(), destination.Close())
}

// checkDestination says at the start what is known to be wrong. What may pass by itself is only
// logged: the relay waits for it.
func (f *relayFlags) checkDestination(ctx context.Context, relay *outbox.Relay, log *slog.Logger) error {
	err := relay.Check(ctx)
	if ctx.Err() != nil {
		err = nil // we are told to stop: that is why nobody answered
	}
	switch {
	case err == nil:
		return nil
	case outbox.IsMisconfigured(err) && !f.wait:
		return usagef("%w; correct it, or wait for it with --wait", err)
	}
	log.Warn("the destination is not ready; waiting for it", "error", outbox.ErrorText(err))
	return nil
}
