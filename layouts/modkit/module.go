package modkit

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/emit"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/pgstore"
)

// AllNamespaces as Config.Namespace serves the messages of all modules. It is for tools that look after the whole
// table, not for modules.
const AllNamespaces = "*"

// Config configures a Module. Only Namespace is required.
type Config struct {
	// Namespace is the module's own, and the module sees no other; AllNamespaces for all.
	Namespace string
	// WorkerID is the worker's name in the rows it holds. Default: a new UUID.
	WorkerID uuid.UUID
	// Topics limits claims, counts and changes to some topics; empty for all.
	Topics []string
	// TenantID limits them to one tenant; zero for all messages, with and without a tenant.
	TenantID uuid.UUID
	// LeaseDuration is how long a claim lasts, unless ClaimCfg sets it. Default 30 s.
	LeaseDuration time.Duration
	// MaxAttempts is how many attempts a message gets, unless ClaimCfg sets it; also for Sweep and Stats. Default
	// 10.
	MaxAttempts int
	// Retry is the delay between attempts. Default: a base of 1 s, a maximum of 5 min.
	Retry outbox.RetryPolicy
	// Layout describes the table if it is not the contract's own. Default: Layout().
	Layout *layouts.Layout
}

// Module is the outbox of one module: its own messages in the shared table, and the calls of the contract. It is
// safe for concurrent use.
type Module struct {
	config  Config
	retry   outbox.RetryPolicy
	emitter *emit.Emitter
	own     *pgstore.Store // with the module's own terms
	open    func(pgstore.Config) (*pgstore.Store, error)
	// conns returns how many connections the module has; zero for any number.
	conns func() int

	mu     sync.Mutex
	stores map[terms]*pgstore.Store
}

// terms are the settings of a claim that need their own store.
type terms struct {
	lease       time.Duration
	maxAttempts int
}

// maxTerms bounds how many stores are kept. A module has one or two terms; if it keeps making up new ones, they are
// compiled again.
const maxTerms = 16

// NewModule returns a module. It does not connect. An *sql.DB must use pgx's stdlib; another driver is refused. Its
// connections are used as they are, within its limits.
func NewModule[DB *pgxpool.Pool | *sql.DB](db DB, config Config) (*Module, error) {
	if db == nil {
		return nil, errors.New("outbox: the database of the module is nil")
	}
	if config.Namespace == "" {
		return nil, errors.New("outbox: Config.Namespace is missing: give the module's own, or modkit.AllNamespaces")
	}
	layout := Layout()
	if config.Layout != nil {
		layout = *config.Layout
	}
	if config.WorkerID == uuid.Nil {
		config.WorkerID = uuid.New()
	}
	config.Topics = slices.Clone(config.Topics)
	m := &Module{config: config, stores: make(map[terms]*pgstore.Store)}
	switch db := any(db).(type) {
	case *pgxpool.Pool:
		m.open = func(c pgstore.Config) (*pgstore.Store, error) { return pgstore.New(db, layout, c) }
		m.conns = func() int { return int(db.Config().MaxConns) }
	case *sql.DB:
		m.open = func(c pgstore.Config) (*pgstore.Store, error) { return pgstore.NewSQL(db, layout, c) }
		m.conns = func() int { return db.Stats().MaxOpenConnections }
	}
	var err error
	if m.retry, err = config.Retry.WithDefaults(); err != nil {
		return nil, err
	}
	if m.emitter, err = emit.New(layout, outbox.EmitConfig{}); err != nil {
		return nil, err
	}
	if m.own, err = m.store(ClaimCfg{}); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *Module) terms(cfg ClaimCfg) terms {
	return terms{cmp.Or(cfg.LeaseDuration, m.config.LeaseDuration), cmp.Or(cfg.MaxAttempts, m.config.MaxAttempts)}
}

// store returns the store for the terms of a claim.
func (m *Module) store(cfg ClaimCfg) (*pgstore.Store, error) {
	t := m.terms(cfg)
	m.mu.Lock()
	defer m.mu.Unlock()
	if store := m.stores[t]; store != nil {
		return store, nil
	}
	store, err := m.newStore(t, m.config.Topics)
	if err != nil {
		return nil, err
	}
	if len(m.stores) >= maxTerms {
		clear(m.stores)
	}
	m.stores[t] = store
	return store, nil
}

func (m *Module) newStore(t terms, topics []string) (*pgstore.Store, error) {
	config := pgstore.Config{
		WorkerID: m.config.WorkerID, Lease: t.lease, MaxAttempts: t.maxAttempts,
		Filter: pgstore.Filter{Topics: topics, TenantID: m.config.TenantID},
	}
	if m.config.Namespace != AllNamespaces {
		config.Filter.Namespace = m.config.Namespace
	}
	return m.open(config)
}

// WorkerID is the worker's name in the rows it holds.
func (m *Module) WorkerID() uuid.UUID { return m.config.WorkerID }

// Enqueue is the function Enqueue in the module's own table and namespace: a message may leave its
// Namespace out, and one of another namespace is refused.
func (m *Module) Enqueue(ctx context.Context, tx Tx, messages ...Message) ([]Enqueued, error) {
	if m.config.Namespace == AllNamespaces {
		return enqueue(ctx, m.emitter, tx, messages)
	}
	messages = slices.Clone(messages)
	for i := range messages {
		switch messages[i].Namespace {
		case "":
			messages[i].Namespace = m.config.Namespace
		case m.config.Namespace:
		default:
			return nil, &outbox.EventError{Index: i, Field: "namespace", Problem: fmt.Sprintf(
				"is %q; the module enqueues in its own, %q", messages[i].Namespace, m.config.Namespace)}
		}
	}
	return enqueue(ctx, m.emitter, tx, messages)
}
