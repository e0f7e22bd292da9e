package cli

import (
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/pgstore"
)

type relayFlags struct {
	source
	hooks                            []any // of the command itself
	to, topicDefault, listen         string
	batchSize, concurrency, attempts int
	poll, lease, baseDelay, maxDelay time.Duration
	publishTimeout                   time.Duration
	retention, letterRetention       time.Duration
	namespace, tenant, subscription  string
	topics                           []string
	notify, wait                     bool
	logFlags
	// consoleAt is where the relay serves a console; empty for none.
	consoleAt string
	console   consoleFlags
}

func (f *relayFlags) flags(cmd *cobra.Command) {
	f.source.flags(cmd)
	s := cmd.Flags()
	s.StringVar(&f.subscription, "subscription", "", "`name` of the stream's subscription (default \"default\")")
	s.StringVar(&f.to, "to", "", "destination `URL`, such as stdout: or file:PATH; see outbox destinations (default: the subscription's)")
	s.StringVar(&f.topicDefault, "topic-default", "", "`topic` of events that have none")
	s.IntVar(&f.batchSize, "batch-size", 1000, "events per claim")
	s.IntVar(&f.concurrency, "concurrency", 2, "batches published at once")
	s.DurationVar(&f.poll, "poll", time.Second, "longest pause between two claims on an idle table; at most a third of the lease")
	s.DurationVar(&f.publishTimeout, "publish-timeout", 30*time.Second, "longest time to publish one batch")
	s.DurationVar(&f.lease, "lease", pgstore.DefaultLease, "how long a claim, or a stream's shard, is kept without renewal")
	s.IntVar(&f.attempts, "max-attempts", 0, "attempts after which an event is dead, unless its row has a maximum (default: the layout's)")
	s.DurationVar(&f.baseDelay, "base-delay", outbox.DefaultBaseDelay, "delay after the first failed attempt; doubles with each")
	s.DurationVar(&f.maxDelay, "max-delay", outbox.DefaultMaxDelay, "largest delay between two attempts")
	s.DurationVar(&f.retention, "retention", 0, "purge delivered events older than this (default: never)")
	s.DurationVar(&f.letterRetention, "dlq-retention", 0, "purge dead letters and dead events older than this (default: never)")
	s.StringVar(&f.namespace, "namespace", "", "only events of this `namespace` (queue tables)")
	listFlag(s, &f.topics, "topic", "only events of this `topic` (queue tables); may be repeated")
	s.StringVar(&f.tenant, "tenant", "", "only events of this tenant's `UUID` (queue tables)")
	s.BoolVar(&f.notify, "notify", true, "listen for notifications of emitting processes, besides polling")
	s.BoolVar(&f.wait, "wait", false, "wait for a misconfigured destination (missing topic or folder, refused credentials) instead of exiting with 2")
	s.StringVar(&f.listen, "listen", "", "serve /healthz, /readyz and /metrics on this `address`, such as 127.0.0.1:9090")
	f.logFlags.flags(cmd)
}

// check rejects numbers that the relay would take for the default, or that make no sense.
func (f *relayFlags) check(flags *pflag.FlagSet) error {
	switch {
	case f.batchSize < 1 || f.batchSize > outbox.MaxBatchSize:
		return usagef("--batch-size is %d; it must be from 1 to %d", f.batchSize, outbox.MaxBatchSize)
	case f.concurrency < 1:
		return usagef("--concurrency is %d; it must be at least 1", f.concurrency)
	case flags.Changed("max-attempts") && f.attempts < 1:
		return usagef("--max-attempts is %d; it must be at least 1", f.attempts)
	}
	for name, value := range map[string]time.Duration{
		"poll": f.poll, "lease": f.lease, "publish-timeout": f.publishTimeout, "base-delay": f.baseDelay, "max-delay": f.maxDelay,
		"retention": f.retention, "dlq-retention": f.letterRetention,
	} {
		if flags.Changed(name) && value <= 0 {
			return usagef("--%s is %s; it must be positive", name, value)
		}
	}
	return nil
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
			values := []string{value}
			if _, ok := flag.Value.(listValue); ok {
				values = strings.Split(strings.TrimSpace(value), "\n")
			}
			for _, value := range values {
				if err := flags.Set(flag.Name, value); err != nil {
					failed = usagef("%s: %w", name, err)
				}
			}
		}
	})
	return failed
}

func (f *relayFlags) options(log *slog.Logger) (storeOptions, error) {
	tenant, err := parseUUID(f.tenant)
	if err != nil {
		return storeOptions{}, usagef("--tenant: %w", err)
	}
	return storeOptions{
		subscription: f.subscription, lease: f.lease, attempts: f.attempts, concurrency: f.concurrency,
		filter:     pgstore.Filter{Namespace: f.namespace, Topics: f.topics, TenantID: tenant},
		purgesDead: f.letterRetention > 0, log: log,
	}, nil
}
