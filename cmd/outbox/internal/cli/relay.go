package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/cmd/outbox/internal/dest"
	"github.com/packfinderz/outbox/cmd/outbox/internal/monitor"
	"github.com/packfinderz/outbox/pgstore"
)

// relayFlags are what relay and drain have in common.
type relayFlags struct {
	source
	to, topicDefault, listen         string
	batchSize, concurrency, attempts int
	poll, lease, baseDelay, maxDelay time.Duration
	retention, letterRetention       time.Duration
	namespace, tenant                string
	topics                           []string
	notify                           bool
	logFormat, logLevel              string
}

func newRelay(a *app) *cobra.Command {
	var f relayFlags
	cmd := &cobra.Command{
		Use:   "relay",
		Short: "Deliver events to a destination until stopped",
		Long: `Claims events, publishes them and settles what became of them, at least once each,
until it gets SIGTERM or SIGINT. Then it claims no more, finishes and settles what is
being published, gives the rest back and exits with 0.

Every flag can be set in the environment: --batch-size as OUTBOX_BATCH_SIZE, and so on.`,
		Example: "  outbox relay --from postgres://localhost/shop --layout modkit --to stdout:",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.relay(cmd, &f, func(ctx context.Context, r *outbox.Relay) error { return r.Run(ctx) })
		},
	}
	f.flags(cmd)
	return cmd
}

func newDrain(a *app) *cobra.Command {
	var f relayFlags
	cmd := &cobra.Command{
		Use:   "drain",
		Short: "Deliver events until none is left, then exit",
		Long: `Like relay, but exits with 0 as soon as no event is due, held or waiting for a retry.
Events scheduled for later are left.`,
		Example: "  outbox drain --from postgres://localhost/shop --layout modkit --to file:events.jsonl",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.relay(cmd, &f, func(ctx context.Context, r *outbox.Relay) error { return r.Drain(ctx) })
		},
	}
	f.flags(cmd)
	return cmd
}

func (f *relayFlags) flags(cmd *cobra.Command) {
	f.source.flags(cmd)
	s := cmd.Flags()
	s.StringVar(&f.to, "to", "", "destination `URL`: stdout:, file:PATH or discard:")
	s.StringVar(&f.topicDefault, "topic-default", "", "`topic` of events that have none")
	s.IntVar(&f.batchSize, "batch-size", 1000, "events per claim")
	s.IntVar(&f.concurrency, "concurrency", 2, "batches published at once")
	s.DurationVar(&f.poll, "poll", time.Second, "longest time between two looks at an idle table; at most a third of the lease")
	s.DurationVar(&f.lease, "lease", pgstore.DefaultLease, "how long a claim lasts without being renewed")
	s.IntVar(&f.attempts, "max-attempts", 0, "attempts after which an event is dead, unless its row says (default: the layout's)")
	s.DurationVar(&f.baseDelay, "base-delay", outbox.DefaultBaseDelay, "delay after the first failed attempt; doubles with each")
	s.DurationVar(&f.maxDelay, "max-delay", outbox.DefaultMaxDelay, "largest delay between two attempts")
	s.DurationVar(&f.retention, "retention", 0, "purge delivered events older than this (default: never)")
	s.DurationVar(&f.letterRetention, "dlq-retention", 0, "purge dead letters, and their events, older than this (default: never)")
	s.StringVar(&f.namespace, "namespace", "", "only events of this `namespace`")
	s.StringSliceVar(&f.topics, "topic", nil, "only events of this `topic`; may be repeated")
	s.StringVar(&f.tenant, "tenant", "", "only events of this tenant's `UUID`")
	s.BoolVar(&f.notify, "notify", true, "be woken by notifications of emitting processes, beside polling")
	s.StringVar(&f.listen, "listen", "", "serve /healthz, /readyz and /metrics on this `address`, such as 127.0.0.1:9090")
	s.StringVar(&f.logFormat, "log-format", "text", "text or json")
	s.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
}

// fromEnvironment sets the flags that were not given from OUTBOX_… variables.
func fromEnvironment(flags *pflag.FlagSet) error {
	var failed error
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed || flag.Name == "help" || failed != nil {
			return
		}
		name := "OUTBOX_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
		if value, ok := os.LookupEnv(name); ok && value != "" {
			if err := flags.Set(flag.Name, value); err != nil {
				failed = usagef("%s: %w", name, err)
			}
		}
	})
	return failed
}

func (a *app) relay(cmd *cobra.Command, f *relayFlags, run func(context.Context, *outbox.Relay) error) error {
	if err := fromEnvironment(cmd.Flags()); err != nil {
		return err
	}
	ctx := cmd.Context()
	log, err := f.logger(a)
	if err != nil {
		return err
	}
	if f.to == "" {
		return usagef("--to is missing; choose stdout:, file:PATH or discard:")
	}
	pool, store, err := f.open(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	destination, err := dest.Open(f.to, a.Out)
	if err != nil {
		return &usageError{err}
	}
	metrics := monitor.New(store)
	relay, err := outbox.NewRelay(outbox.Config{
		Store: store, Publisher: destination, DefaultTopic: f.topicDefault,
		BatchSize: f.batchSize, Concurrency: f.concurrency, Poll: f.poll,
		Listen: f.notify,
		Retry:  outbox.RetryPolicy{Base: f.baseDelay, Max: f.maxDelay},
		Purge:  outbox.Purge{Retention: f.retention, DeadLetterRetention: f.letterRetention},
		Hooks:  []any{metrics},
		Logger: log,
	})
	if err != nil {
		return errors.Join(&usageError{err}, destination.Close())
	}
	if f.listen != "" {
		stop, err := metrics.Serve(f.listen, pool, relay, log)
		if err != nil {
			return errors.Join(&usageError{err}, destination.Close())
		}
		defer stop()
	}
	host, _ := os.Hostname() // only for the log
	log.Info("worker", "worker_id", store.WorkerID(), "host", host, "pid", os.Getpid())
	return errors.Join(run(ctx, relay), destination.Close())
}

// open connects to the table that the flags name, and checks that it is what they say.
func (f *relayFlags) open(ctx context.Context) (*pgxpool.Pool, *pgstore.Store, error) {
	layout, _, err := f.resolve()
	if err != nil {
		return nil, nil, err
	}
	pool, err := f.pool(ctx, layout)
	if err != nil {
		return nil, nil, err
	}
	store, err := f.store(ctx, pool, layout)
	if err != nil {
		pool.Close()
		return nil, nil, err
	}
	return pool, store, nil
}

// store checks that the table is there and is what the layout says.
func (f *relayFlags) store(ctx context.Context, pool *pgxpool.Pool, layout pgstore.Layout) (*pgstore.Store, error) {
	tenant, err := parseUUID(f.tenant)
	if err != nil {
		return nil, usagef("--tenant: %w", err)
	}
	store, err := pgstore.New(pool, layout, pgstore.Config{
		WorkerID: uuid.New(), Lease: f.lease, MaxAttempts: f.attempts,
		Filter: pgstore.Filter{Namespace: f.namespace, Topics: f.topics, TenantID: tenant},
	})
	if err != nil {
		return nil, &usageError{err}
	}
	if f.letterRetention > 0 && layout.DeadLetter == nil {
		return nil, usagef("--dlq-retention: layout %s has no dead-letter table", layout.Name)
	}
	if err := store.Verify(ctx); err != nil {
		if errors.Is(err, pgstore.ErrMismatch) {
			return nil, &usageError{err}
		}
		return nil, classify(err, "check --schema and --table")
	}
	return store, nil
}

// pool opens as many connections as the relay can use at once.
func (f *relayFlags) pool(ctx context.Context, layout pgstore.Layout) (*pgxpool.Pool, error) {
	conn, err := f.config()
	if err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig("")
	if err != nil {
		return nil, fmt.Errorf("prepare the pool: %w", err)
	}
	config.ConnConfig = conn
	// One for each batch, one to claim ahead, one to keep house.
	config.MaxConns = int32(max(f.concurrency, 1)) + 2
	if layout.Hold == pgstore.HoldRowLock {
		config.MaxConns++
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("prepare the pool: %w", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, classify(fmt.Errorf("connect: %w", err), "")
	}
	return pool, nil
}

func (f *relayFlags) logger(a *app) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil {
		return nil, usagef("--log-level is %q; choose debug, info, warn or error", f.logLevel)
	}
	options := &slog.HandlerOptions{Level: level}
	switch f.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(a.Err, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(a.Err, options)), nil
	}
	return nil, usagef("--log-format is %q; choose text or json", f.logFormat)
}
