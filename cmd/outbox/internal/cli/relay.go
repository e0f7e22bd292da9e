package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"

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
		Long: `Claims events, publishes each at least once and records the outcome, until SIGTERM or
SIGINT. Then it stops claiming, finishes and settles what is being published, releases
the rest and exits with 0.

On a stream it serves one subscription and shares it with the other relays of that
subscription. Without --to it publishes to the subscription's destination.

Every flag can be set in the environment: --batch-size as OUTBOX_BATCH_SIZE, and so on.`,
		Example: `  outbox relay --from postgres://localhost/shop --to stdout:
  outbox relay --from postgres://localhost/shop --subscription billing --to file:billing.jsonl
  outbox relay --from postgres://localhost/shop --layout modkit --to stdout:`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.relay(cmd, &f, func(ctx context.Context, on *running) error { return on.relay.Run(ctx) })
		},
	}
	f.flags(cmd)
	cmd.Flags().StringVar(&f.consoleAt, "console", "", "serve the web console on this `address`, such as 127.0.0.1:8090")
	f.console.flags(cmd, "console-")
	return cmd
}

// running is a relay between a store and one destination.
type running struct {
	relay *outbox.Relay
	from  *opened
	to    string
}

func (a *app) relay(cmd *cobra.Command, f *relayFlags, run func(context.Context, *running) error) error {
	if err := fromEnvironment(cmd.Flags()); err != nil {
		return err
	}
	if err := f.check(cmd.Flags()); err != nil {
		return err
	}
	// If standard output was closed, nobody reads the events, and the relay stops.
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
	turn := &redirection{fixed: f.to != "", log: log}
	options.changed = turn.changed
	from, err := f.open(ctx, options)
	if err != nil {
		return err
	}
	defer from.close()
	s := &serving{flags: f, from: from, metrics: monitor.New(from.store), pipe: newPipe(a.Out, end), log: log}
	to := cmp.Or(f.to, from.destination)
	for {
		running, stop := turn.begin(ctx, to)
		err := s.serve(ctx, running, to, run)
		next, redirected := turn.end()
		stop()
		switch {
		case errors.Is(err, outbox.ErrGone):
			return errors.Join(&usageError{err}, s.close(ctx)) // as at the start
		case !redirected || ctx.Err() != nil:
			return errors.Join(err, s.close(ctx))
		}
		log.Info("the subscription's destination was altered; going on with the new one", "to", dest.Name(next))
		to = next
	}
}

// serving is a relay program: a store, and one destination after the other.
type serving struct {
	flags   *relayFlags
	from    *opened
	metrics *monitor.Metrics
	pipe    io.Writer
	log     *slog.Logger
	// relay is the running relay; stops end what is served beside it.
	relay atomic.Pointer[outbox.Relay]
	stops []func() error
}

func (s *serving) Routes() []outbox.RouteStatus { return s.relay.Load().Routes() }

func (s *serving) StoreError() error { return s.relay.Load().StoreError() }

// serveBeside serves health, metrics and the console while the program runs.
func (s *serving) serveBeside(ctx context.Context, destination outbox.Publisher) error {
	f := s.flags
	if f.listen != "" {
		stop, err := s.metrics.Serve(f.listen, s.from.pool, s, s.log)
		if err != nil {
			return &usageError{err}
		}
		s.stops = append(s.stops, func() error { stop(); return nil })
	}
	if f.consoleAt != "" {
		console, err := f.console.serve(ctx, &f.source, consoleOptions{
			listen: f.consoleAt, subscription: f.subscription, publisher: destination, defaultTopic: f.topicDefault, log: s.log,
		})
		if err != nil {
			return err
		}
		s.log.Info("the console listens", "url", console.URL)
		s.stops = append(s.stops, console.close)
	}
	return nil
}

// close ends what is served beside the relay, unless another destination comes next. It runs before the destination
// is closed: the console may be replaying to it.
func (s *serving) close(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), errRedirected) {
		return nil
	}
	var errs []error
	for _, stop := range slices.Backward(s.stops) {
		errs = append(errs, stop())
	}
	s.stops = nil
	return errors.Join(errs...)
}

// serve relays to one destination until ctx ends.
func (s *serving) serve(
	life, ctx context.Context, to string, run func(context.Context, *running) error,
) (err error) {
	f, from, log := s.flags, s.from, s.log
	if to == "" {
		return errors.Join(s.close(ctx), usagef("--to is missing; choose one of %s", dest.Names()))
	}
	destination, err := dest.Prepare(to, s.pipe)
	if err != nil {
		return errors.Join(&usageError{err}, s.close(ctx))
	}
	defer func() { err = errors.Join(err, s.close(ctx), destination.Close()) }()
	relay, err := outbox.NewRelay(outbox.RelayConfig{
		Store: from.store, Publisher: destination, DefaultTopic: f.topicDefault, Topics: f.topics,
		BatchSize: f.batchSize, Concurrency: f.concurrency, Poll: f.poll,
		Listen: f.notify, PublishTimeout: f.publishTimeout,
		Retry:  outbox.RetryPolicy{Base: f.baseDelay, Max: f.maxDelay},
		Purge:  outbox.Purge{Retention: f.retention, DeadLetterRetention: f.letterRetention},
		Hooks:  append([]any{s.metrics}, f.hooks...),
		Logger: log,
	})
	if err != nil {
		return &usageError{err}
	}
	s.metrics.ForgetRoutes() // of another destination
	if first := s.relay.Swap(relay) == nil; first {
		if err := s.serveBeside(life, destination); err != nil {
			return err
		}
	}
	host, _ := os.Hostname() // only for the log
	log.Info("relaying", "from", from.name(), "to", dest.Name(to), "worker_id", from.store.WorkerID(), "host", host, "pid", os.Getpid())
	if err := f.checkDestination(ctx, relay, log); err != nil {
		return err
	}
	if warner, ok := destination.(dest.Warner); ok {
		for _, text := range warner.Warnings(ctx, slices.Concat(f.topics, []string{f.topicDefault})...) {
			log.Warn(text)
		}
	}
	err = run(ctx, &running{relay, from, to})
	if cause := context.Cause(ctx); errors.Is(cause, errNoReader) {
		return cause
	}
	return err
}

// checkDestination fails at the start if a setting is known to be wrong. It only logs what may pass by itself: the
// relay waits for it.
func (f *relayFlags) checkDestination(ctx context.Context, relay *outbox.Relay, log *slog.Logger) error {
	err := relay.Check(ctx)
	if ctx.Err() != nil {
		err = nil // the check was stopped, so it proves nothing
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
