package modkit_test

import (
	"flag"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/layouts/modkit"
	"github.com/packfinderz/outbox/pgstore"
)

// init lowers rapid's number of checks, because each runs hundreds of statements. A flag or the environment
// overrides it.
func init() {
	if os.Getenv("RAPID_CHECKS") == "" {
		_ = flag.Set("rapid.checks", strconv.Itoa(statesChecks))
	}
}

const (
	// statesWorkers is how many workers share the table.
	statesWorkers = 3
	// statesChecks is the number of checks from which a run must have seen every transition.
	statesChecks = 60
)

// TestStates takes random steps on a table. After each, every recorded change must be one that the machine allows,
// and that this step may make.
func TestStates(t *testing.T) {
	t.Parallel()
	s := newStates(t)
	checks := 0
	rapid.Check(t, func(rt *rapid.T) {
		s.reset(rt)
		s.step(rt, s.enqueue, "enqueue")
		rt.Repeat(map[string]func(*rapid.T){
			"ack":              func(rt *rapid.T) { s.step(rt, s.ack, "ack") },
			"claim":            func(rt *rapid.T) { s.step(rt, s.claim, "claim", "reclaim", "used up") },
			"claim again":      func(rt *rapid.T) { s.step(rt, s.claim, "claim", "reclaim", "used up") },
			"crash":            s.crash,
			"enqueue":          func(rt *rapid.T) { s.step(rt, s.enqueue, "enqueue") },
			"enqueue it again": func(rt *rapid.T) { s.step(rt, s.enqueueAgain) },
			"lease ends":       func(rt *rapid.T) { s.step(rt, s.endLeases, "lease ends") },
			"nack":             func(rt *rapid.T) { s.step(rt, s.nack, "nack", "last nack") },
			"nack again":       func(rt *rapid.T) { s.step(rt, s.nack, "nack", "last nack") },
			"release":          func(rt *rapid.T) { s.step(rt, s.release, "release") },
			"retry by hand":    func(rt *rapid.T) { s.step(rt, s.retry, "retry by hand") },
			"sweep":            func(rt *rapid.T) { s.step(rt, s.sweep, "used up") },
			"terminal":         func(rt *rapid.T) { s.step(rt, s.terminal, "terminal", "last nack") },
			"time passes":      func(rt *rapid.T) { s.step(rt, s.passTime, "time passes") },
		})
		checks++
	})
	t.Logf("%d checks met %v", checks, s.met)
	for _, e := range edges() {
		if e.name != "renew" && s.met[e.name] == 0 && checks >= statesChecks {
			t.Errorf("no check met this: %s", e.name)
		}
	}
	if s.met["refused"] == 0 && checks >= statesChecks {
		t.Error("no claim was refused")
	}
}

// states is a table, the workers on it, and who holds what.
type states struct {
	*bed
	machine
	names   []uuid.UUID
	pools   []*pgxpool.Pool
	hands   map[string]*pgxpool.Pool // of actors that are not workers
	modules []*modkit.Module
	met     map[string]int

	ids     []uuid.UUID
	claims  []*held
	holders map[uuid.UUID]*held
	seen    int64
	last    map[uuid.UUID]snapshot
}

// held is a claimed message and the worker that claimed it.
type held struct {
	worker  int
	message modkit.ClaimedMessage
}

func newStates(t *testing.T) *states {
	t.Helper()
	s := &states{
		bed: newBed(t), met: make(map[string]int), hands: make(map[string]*pgxpool.Pool),
		// Nothing expires or becomes due by itself.
		machine: machine{lease: time.Hour, retry: outbox.RetryPolicy{Base: time.Hour, Max: 3 * time.Hour}},
	}
	s.watch()
	for range statesWorkers {
		name := uuid.New()
		s.names, s.pools = append(s.names, name), append(s.pools, s.as(name.String()))
	}
	for _, name := range []string{producer, person, clock} {
		s.hands[name] = s.as(name)
	}
	return s
}

// reset begins a check on an empty table.
func (s *states) reset(rt *rapid.T) {
	// changes first: its type is the events' row, which autovacuum locks while it holds them.
	pgtest.Exec(s, s.pool, `TRUNCATE changes, modkit_outbox_events`)
	s.maxAttempts = rapid.IntRange(1, 3).Draw(rt, "maximum")
	s.ids, s.claims, s.holders, s.last = nil, nil, make(map[uuid.UUID]*held), make(map[uuid.UUID]snapshot)
	s.modules = make([]*modkit.Module, statesWorkers)
	for i := range s.modules {
		s.open(rt, i)
	}
}

// config returns the configuration of one worker.
func (m *machine) config(worker uuid.UUID) modkit.Config {
	return modkit.Config{Namespace: modkit.AllNamespaces, WorkerID: worker, LeaseDuration: m.lease, MaxAttempts: m.maxAttempts, Retry: m.retry}
}

func (s *states) open(rt *rapid.T, worker int) {
	module, err := modkit.NewModule(s.pools[worker], s.config(s.names[worker]))
	if err != nil {
		rt.Fatal(err)
	}
	s.modules[worker] = module
}

// table returns the store that the relay and people use.
func (s *states) table(rt *rapid.T, pool *pgxpool.Pool, worker uuid.UUID) *pgstore.Store {
	store, err := pgstore.New(pool, modkit.Layout(), pgstore.Config{WorkerID: worker, Lease: s.lease, MaxAttempts: s.maxAttempts})
	if err != nil {
		rt.Fatal(err)
	}
	return store
}

// step takes a step, and checks what it changed against the machine. A step returns how many rows it must change.
func (s *states) step(rt *rapid.T, take func(*rapid.T) int, allowed ...string) {
	want := take(rt)
	list := s.check(rt)
	if len(list) != want {
		rt.Fatalf("%d rows were changed, want %d: %v", len(list), want, list)
	}
	for _, name := range list {
		if !slices.Contains(allowed, name) {
			rt.Fatalf("the step made a %s; it may make %v", name, allowed)
		}
		s.met[name]++
	}
}

// check reads the new changes and names each.
func (s *states) check(f fataler) (names []string) {
	for _, c := range s.changes(f, s.seen) {
		name := s.find(&c)
		if name == "" {
			f.Fatalf("the machine has no such transition: %s", &c)
		}
		if s.last[c.id] != c.old {
			f.Fatalf("a change is missing before this one: %s; the last was to %+v", &c, s.last[c.id])
		}
		s.last[c.id], s.seen = c.new, c.seq
		names = append(names, name)
	}
	return names
}
