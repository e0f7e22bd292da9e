package pgstore_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/pgstore"
)

const (
	modelWorkers = 3
	// modelLease does not run out by itself in a test.
	modelLease = 10 * time.Minute
	// modelSlack is less than what any two times of the model differ by.
	modelSlack = 4 * time.Minute
	// modelOpen is how many transactions of claims are open at once, at most.
	modelOpen = 6
	// modelEnough is the number of checks from which on a run must have met every fault.
	modelEnough = 40
)

// init lowers rapid's number of checks, as each is hundreds of statements. A flag or the
// environment has the last word.
func init() {
	if os.Getenv("RAPID_CHECKS") == "" {
		_ = flag.Set("rapid.checks", "40")
	}
}

// TestModel drives each layout's table with random steps, and a model of it in memory
// beside them; after every step they agree on every row.
func TestModel(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"modkit", "doorito", "packfinderz", "ours"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, newHarness(t, name))
			checks := 0
			rapid.Check(t, func(rt *rapid.T) {
				m.reset(rt)
				defer m.close()
				m.emit(rt)
				rt.Repeat(map[string]func(*rapid.T){
					"":                 m.check,
					"age":              m.age,
					"claim":            m.claim,
					"claim again":      m.claim,
					"claim once more":  m.claim,
					"crash":            m.crash,
					"emit":             m.emit,
					"emit in a long":   m.emitLate,
					"end an emit":      m.endEmit,
					"expire":           m.expire,
					"purge":            m.purge,
					"renew":            m.renew,
					"retry":            m.retry,
					"settle":           m.settle,
					"settle again":     m.settle,
					"settle once more": m.settle,
					"sweep":            m.sweep,
				})
				m.drain(rt)
				checks++
			})
			t.Logf("%d checks met %v", checks, m.met)
			always, rare := m.faults()
			for _, fault := range slices.Concat(always, rare) {
				enough := modelEnough
				if slices.Contains(rare, fault) {
					enough = 5 * modelEnough
				}
				if checks >= enough && m.met[fault] == 0 {
					t.Errorf("no check met this: %s", fault)
				}
			}
		})
	}
}

// machine is a layout's table, the workers on it, and the model of it.
type machine struct {
	t       *testing.T
	h       *harness
	rowsSQL string
	pools   []*pgxpool.Pool
	// backoff is whether rows have a due time; rowMaximum whether they have a maximum.
	backoff, rowMaximum bool
	met                 map[string]int

	maximum int
	workers []uuid.UUID
	stores  []*pgstore.Store
	admin   *pgstore.Store // for what people do
	fresh   []bool         // nothing claimed yet: it looks at everything
	events  []*modelEvent
	claims  []*modelClaim
	emits   []openEmit
	rows    map[uuid.UUID]modelRow
	touched map[*modelEvent]bool
	errors  int
}

// openEmit is a transaction that has emitted and not ended.
type openEmit struct {
	tx     pgx.Tx
	events []*modelEvent
}

func newMachine(t *testing.T, h *harness) *machine {
	t.Helper()
	m := &machine{
		t: t, h: h, rowsSQL: modelRowsSQL(h), met: make(map[string]int),
		backoff:    !h.layout.Columns.NextAttemptAt.IsZero(),
		rowMaximum: !h.layout.Columns.MaxAttempts.IsZero(),
	}
	for i := range modelWorkers {
		config, err := pgxpool.ParseConfig(h.url)
		if err != nil {
			t.Fatal(err)
		}
		config.MaxConns = modelOpen + 2
		config.ConnConfig.RuntimeParams["application_name"] = workerName(i)
		pool, err := pgxpool.NewWithConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		m.pools = append(m.pools, pool)
	}
	return m
}

func workerName(i int) string { return fmt.Sprintf("worker %d", i) }

// faults are what every run has to meet, and what a long one has to.
func (m *machine) faults() (always, rare []string) {
	always = []string{"settled", "refused", "crash", "exhausted", "renewed", "late commit", "rolled back emit", "scan of everything"}
	rare = []string{"retried", "purged"}
	switch m.h.layout.Hold {
	case layouts.HoldLease:
		always, rare = append(always, "claimed after it ran out"), append(rare, "partly refused", "swept")
	case layouts.HoldDefer:
		always, rare = append(always, "buried with a batch"), append(rare, "partly refused")
	case layouts.HoldRowLock:
		always = append(always, "buried with a batch")
	}
	if m.h.layout.DeadLetter != nil {
		rare = append(rare, "purged letter")
	}
	return always, rare
}

// reset begins a check on an empty table.
func (m *machine) reset(rt *rapid.T) {
	tables := m.h.table()
	if m.h.layout.DeadLetter != nil {
		tables += ", " + m.h.letters()
	}
	pgtest.Exec(m.t, m.h.pool, "TRUNCATE "+tables)
	m.maximum = rapid.IntRange(1, 3).Draw(rt, "maximum")
	m.events, m.claims, m.emits, m.errors = nil, nil, nil, 0
	m.rows, m.touched = make(map[uuid.UUID]modelRow), make(map[*modelEvent]bool)
	m.workers, m.stores, m.fresh = nil, nil, nil
	for i := range modelWorkers {
		m.workers = append(m.workers, uuid.New())
		m.stores = append(m.stores, nil)
		m.fresh = append(m.fresh, false)
		m.open(rt, i)
	}
	m.admin = m.store(rt, m.h.pool, uuid.New())
}

func (m *machine) store(rt *rapid.T, pool *pgxpool.Pool, worker uuid.UUID) *pgstore.Store {
	store, err := pgstore.New(pool, m.h.layout, pgstore.Config{WorkerID: worker, Lease: modelLease, MaxAttempts: m.maximum})
	if err != nil {
		rt.Fatal(err)
	}
	return store.ScansAreQuick()
}

// open starts a worker's process anew.
func (m *machine) open(rt *rapid.T, worker int) {
	m.stores[worker], m.fresh[worker] = m.store(rt, m.pools[worker], m.workers[worker]), true
}

// close ends what a check has left open.
func (m *machine) close() {
	for _, claim := range m.claims {
		claim.batch.Abandon()
	}
	for _, open := range m.emits {
		_ = open.tx.Rollback(m.t.Context())
	}
}

// drain brings every claim to its end and delivers what is left: nothing may be lost.
func (m *machine) drain(rt *rapid.T) {
	for len(m.emits) > 0 {
		m.endEmit(rt)
	}
	for i := range m.stores {
		m.forget(i)
	}
	m.runOut(m.pick(func(*modelEvent) bool { return true }))
	m.check(rt)
	m.older(1000 * time.Hour)
	m.check(rt)
	for range len(m.events) + 1 {
		m.open(rt, 0)
		claim := m.take(rt, 0, 7)
		if claim == nil {
			break
		}
		m.finish(rt, claim, slices.Repeat([]outbox.Outcome{{Kind: outbox.Delivered}}, len(claim.events)))
		m.check(rt)
	}
	for _, e := range m.events {
		if e.status == modelWaiting || e.status == modelLeased {
			rt.Fatalf("%s is %s after everything was delivered", e.id, e.status)
		}
	}
	for _, claim := range m.claims {
		m.finish(rt, claim, slices.Repeat([]outbox.Outcome{{Kind: outbox.Released}}, len(claim.events)))
	}
	m.check(rt)
}

// errLeaseLost fails unless the error says that the lease was lost.
func errLeaseLost(rt *rapid.T, claim *modelClaim, what string, err error) {
	if !errors.Is(err, outbox.ErrLeaseLost) {
		rt.Fatalf("%s of %s, which is lost: %v", what, claim, err)
	}
}
