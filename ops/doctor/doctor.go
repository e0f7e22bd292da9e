// Package doctor examines an outbox and its server, and says what is wrong and what to do about it. It changes
// nothing: every check runs in its own read-only transaction, with short timeouts. A check that lacks rights says
// so and does not stop others.
package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/ops"
	"github.com/packfinderz/outbox/pgstore"
)

// Config says what is normal for an outbox. The zero value is ready to use.
type Config struct {
	// Retention is how long delivered events should be kept. Default 30 days.
	Retention time.Duration
	// Lease is the relays' lease. Default 30 s.
	Lease time.Duration
	// Patience is the longest time that an event may be due, a lease may be over, or a session may wait for a lock
	// of the tables. Default a minute.
	Patience time.Duration
	// LongTransaction is the longest time that a transaction may run. Default ten minutes.
	LongTransaction time.Duration

	// For says what the connected role is for; a missing right for that is a problem. By default a role needs all
	// rights of one use, whichever that is.
	For Use
	// Checks are the names of the checks to run. Default: all.
	Checks []string
	// Layout is the value of --layout in the commands of the advice. Default: the layout's name.
	Layout string

	// now is the client's clock; tests replace it.
	now func() time.Time
}

// Use says what a role is for.
type Use string

// The uses of roles.
const (
	// UseEmit is the role of a producer.
	UseEmit Use = "emit"
	// UseRelay is the role of a relay.
	UseRelay Use = "relay"
	// UsePurge is the role of a relay that also purges. Only Rights accepts it: Examine warns of any relay's role
	// that may not purge.
	UsePurge Use = "purge"
)

// Defaults of Config.
const (
	DefaultRetention       = 30 * 24 * time.Hour
	DefaultPatience        = time.Minute
	DefaultLongTransaction = 10 * time.Minute
)

// Validate rejects negative durations and unknown check names.
func (config Config) Validate() error {
	for name, value := range map[string]time.Duration{
		"retention": config.Retention, "lease": config.Lease, "patience": config.Patience,
		"longest time of a transaction": config.LongTransaction,
	} {
		if value < 0 {
			return fmt.Errorf("outbox: the %s is %s; it cannot be negative", name, value)
		}
	}
	if config.For != "" && config.For != UseEmit && config.For != UseRelay {
		return fmt.Errorf("outbox: a role is for %s or for %s, not for %q", UseEmit, UseRelay, config.For)
	}
	var known []string
	for _, c := range checks {
		known = append(known, c.Name)
	}
	for _, name := range config.Checks {
		if !slices.Contains(known, name) {
			return fmt.Errorf("outbox: there is no check %q; there are %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}

func (config *Config) wants(c Check) bool {
	return len(config.Checks) == 0 || slices.Contains(config.Checks, c.Name)
}

func (config Config) withDefaults() Config {
	config.Retention = cmp.Or(config.Retention, DefaultRetention)
	config.Lease = cmp.Or(config.Lease, pgstore.DefaultLease)
	config.Patience = cmp.Or(config.Patience, DefaultPatience)
	config.LongTransaction = cmp.Or(config.LongTransaction, DefaultLongTransaction)
	if config.now == nil {
		config.now = time.Now
	}
	return config
}

// Examine runs the checks on an outbox; of a stream, on all its subscriptions. It returns an error if the config is
// wrong or the database cannot be reached. Everything else that is wrong is in the report.
func Examine(ctx context.Context, o *ops.Outbox, config Config) (Report, error) {
	if err := config.Validate(); err != nil {
		return Report{}, err
	}
	own, err := ownPool(ctx, o.Pool())
	if err != nil {
		return Report{}, err
	}
	defer own.Close()
	e := &exam{pool: own, patient: patientOf(o), config: config.withDefaults()}
	report := Report{Target: e.patient.name()}
	if err := own.QueryRow(ctx, `SHOW server_version`).Scan(&report.Server); err != nil {
		return Report{}, fmt.Errorf("outbox: reach the database: %w", err)
	}
	for _, c := range checks {
		// Other checks rely on the result of layout.
		if !config.wants(c) && c.Name != "layout" {
			continue
		}
		before := len(e.findings)
		if err := e.run(ctx, c); err != nil {
			return Report{}, fmt.Errorf("outbox: check %s: %w", c.Name, err)
		}
		if !config.wants(c) && !e.unfit { // an unfit layout explains why the others say nothing
			e.findings = e.findings[:before]
		}
	}
	report.Findings = e.findings
	return report, nil
}

// ownPool opens connections like the caller's that prepare nothing: behind a pooler in transaction mode, a prepared
// statement may be in another session than its next use.
func ownPool(ctx context.Context, pool *pgxpool.Pool) (*pgxpool.Pool, error) {
	config := pool.Config()
	config.MaxConns, config.MinConns, config.MinIdleConns = 2, 0, 0
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	config.ConnConfig.StatementCacheCapacity, config.ConnConfig.DescriptionCacheCapacity = 0, 0
	own, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("outbox: prepare connections: %w", err)
	}
	return own, nil
}
