// Package pgstore is the store of outbox tables that exist already. A layouts.Layout says what differs between them; every
// statement is compiled from it once.
package pgstore

import (
	"cmp"
	"database/sql"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/pgsession"
	"github.com/packfinderz/outbox/internal/sqlstate"
	"github.com/packfinderz/outbox/internal/tablesql"
	"github.com/packfinderz/outbox/layouts"
)

// DefaultLease is the default of Config.Lease.
const DefaultLease = 30 * time.Second

// Config adjusts a store. The zero value is ready to use.
type Config struct {
	// WorkerID names this store in the rows it holds. Default: a new UUID.
	WorkerID uuid.UUID
	// Lease is how long a claim lasts without being renewed. Default 30 s; between 100 ms and 24 h.
	Lease time.Duration
	// MaxAttempts is the number of attempts after which an event is dead, unless its row has its own. Default: the
	// layout's.
	MaxAttempts int
	// Filter limits the store to some of the table's events.
	Filter Filter
}

// Filter limits a store to some of a table's events. Setting a field that the table has no column for is an error.
type Filter struct {
	// Namespace is the only namespace; empty for all.
	Namespace string
	// Topics are the only topics; empty for all.
	Topics []string
	// TenantID is the only tenant; zero for all.
	TenantID uuid.UUID
}

// Store claims and settles the events of one queue table. It is an outbox.Store.
type Store struct {
	given  *pgxpool.Pool   // the caller's; nil on database/sql
	pool   *pgsession.Pool // the same, behind a pooler too
	conns  func() int      // how many it may open; zero for any number
	layout tablesql.Layout
	config Config
	sql    *statements
	scan   *scanner
	begin  []string // of a claim that locks

	mu sync.Mutex
	// watermark is the order column's value of the last row claimed: a scan from there does
	// not pass the rows that others hold, that are dead, or that vacuum has not removed.
	watermark time.Time
	// fullAt and fullTook are when a scan without watermark was last made, and how long it took.
	fullAt   time.Time
	fullTook time.Duration
	// slowScan is how long such a scan may take before it is limited at all.
	slowScan time.Duration
	// idle is set when the last claim found nothing.
	idle bool
	// expiredAt and expiredTook are when expired leases were last looked for, and how long it took.
	expiredAt   time.Time
	expiredTook time.Duration
	// farAt is when leases that end too far ahead were last looked for.
	farAt time.Time
	// far are the leases that end further ahead than this store's would.
	far map[[16]byte]watched
}

var _ outbox.Store = (*Store)(nil)

// New compiles the layout's statements. It does not connect; see Verify.
func New(pool *pgxpool.Pool, layout layouts.Layout, config Config) (*Store, error) {
	return open(&Store{
		given: pool, pool: pgsession.Borrow(pool), conns: func() int { return int(pool.Config().MaxConns) },
	}, layout, config)
}

// ErrNotPGX is returned for an *sql.DB that is not on pgx.
var ErrNotPGX = pgsession.ErrNotPGX

// NewSQL is New on the connections of database/sql, which have to be those of pgx's stdlib: with any other driver it
// returns ErrNotPGX. Such a store hears no notifications: it polls.
func NewSQL(db *sql.DB, layout layouts.Layout, config Config) (*Store, error) {
	if err := pgsession.CheckSQL(db); err != nil {
		return nil, err
	}
	return open(&Store{
		pool: pgsession.BorrowSQL(db), conns: func() int { return db.Stats().MaxOpenConnections },
	}, layout, config)
}

// open completes a store that has its connections.
func open(s *Store, described layouts.Layout, config Config) (*Store, error) {
	layout := tablesql.Layout{Layout: described}
	if err := layout.Validate(); err != nil {
		return nil, err
	}
	config.WorkerID = cmp.Or(config.WorkerID, uuid.New())
	config.Lease = cmp.Or(config.Lease, DefaultLease)
	config.MaxAttempts = cmp.Or(config.MaxAttempts, layout.MaxAttempts)
	if config.Lease < 100*time.Millisecond || config.Lease > 24*time.Hour {
		return nil, fmt.Errorf("outbox: the lease is %s; it must be between 100ms and 24h", config.Lease)
	}
	if config.MaxAttempts < 1 || config.MaxAttempts > math.MaxInt32 {
		return nil, fmt.Errorf("outbox: the maximum of attempts is %d; it must be between 1 and %d", config.MaxAttempts, math.MaxInt32)
	}
	if err := config.Filter.check(&layout); err != nil {
		return nil, err
	}
	s.layout, s.config = layout, config
	s.sql, s.scan = compile(&layout, &config), newScanner(&layout, config.MaxAttempts)
	s.begin, s.slowScan = beginLocked(config.Lease), slowScan
	return s, nil
}

func (f *Filter) check(layout *tablesql.Layout) error {
	for _, c := range []struct {
		field  layouts.Field
		set    bool
		column layouts.Column
	}{
		{layouts.FieldNamespace, f.Namespace != "", layout.Columns.Namespace},
		{layouts.FieldTopic, len(f.Topics) > 0, layout.Columns.Topic},
		{layouts.FieldTenantID, f.TenantID != uuid.Nil, layout.Columns.TenantID},
	} {
		if c.set && c.column.IsZero() {
			return fmt.Errorf("outbox: layout %s has no column for %s, so it cannot be filtered by it", layout.Name, c.field)
		}
	}
	for _, name := range append([]string{f.Namespace}, f.Topics...) {
		if strings.ContainsRune(name, 0) || !utf8.ValidString(name) {
			return fmt.Errorf("outbox: %q is no namespace or topic: text in PostgreSQL is UTF-8 without NUL", name)
		}
	}
	return nil
}

// explain adds what to do if the table does not exist.
func (s *Store) explain(err error) error { return sqlstate.ExplainMissing(err, s.layout.Name) }

// WorkerID is the name of this store in the rows it holds.
func (s *Store) WorkerID() uuid.UUID { return s.config.WorkerID }

// Traits tells the relay what to expect.
func (s *Store) Traits() outbox.Traits {
	traits := outbox.Traits{
		Name:    s.layout.Name + "/" + s.layout.Table,
		Lease:   s.config.Lease,
		Backoff: !s.layout.Columns.NextAttemptAt.IsZero(),
	}
	if s.layout.Locks() {
		// Each open batch keeps a connection.
		traits.OpenBatches = s.conns()
	}
	return traits
}
