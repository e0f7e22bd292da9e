//go:build unix

package chaos

// One run: an outbox, its producers and some relay processes, from the first event to the verdict.

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/internal/testing/process"
)

const (
	batchSize   = 50
	concurrency = 2
	poll        = 50 * time.Millisecond
	// inFlight is what one relay can have published and not settled: a batch for each worker and one claimed ahead.
	inFlight = (concurrency + 1) * batchSize
	// lineBytes is about the length of a line, to say how far a relay has come by the size of its file.
	lineBytes = 300
	// look is the pause between two looks at something awaited.
	look = 2 * time.Millisecond
)

// plan says what a run does.
type plan struct {
	program string
	url     string
	address func() string // where the producers' database is by now; nil if it stays at url
	through string        // what the program is given; empty for url
	layout  string
	migrate []string      // more flags of outbox migrate up
	count   int           // of relays
	think   time.Duration // the longest pause of a producer
	steady  bool          // the load goes on as long as there are faults
	events  int           // at least
	faults  int           // that meet events in flight
	lease   time.Duration
	seed    uint64
}

// relay is one of the relays: a process at a time, one life after the other.
type relay struct {
	*process.Process
	name    string
	program string // if not the run's
	lives   int
	life    *Incarnation // the one that runs
	flags   []string     // more flags of outbox relay
	inbox   inbox        // its own, if not the run's
	frozen  bool         // it is suspended
}

// run is a plan being carried out.
type run struct {
	*testing.T
	plan
	pool      *pgxpool.Pool
	oracle    oracle
	inbox     inbox
	producers *producers
	choose    *rand.Rand
	folder    string
	relays    []*relay
	faulted   int // faults made
	met       int // of them, those that met events in flight
}

// newRun makes the tables with the program, and starts the producers and the relays.
func newRun(t *testing.T, p plan) *run {
	t.Helper()
	pool := connect(t, p.url, p.address)
	r := &run{
		T: t, plan: p, pool: pool, folder: t.ArtifactDir(),
		choose: rand.New(rand.NewPCG(p.seed, 1)),
	}
	var err error
	if r.oracle, err = newOracle(pool, &p); err != nil {
		t.Fatal(err)
	}
	r.inbox = r.oracle.inbox(t, r.folder)
	t.Logf("seed %d", p.seed)
	r.command("migrate", append([]string{"up", "--layout", p.layout}, p.migrate...)...).MustSucceed(t)
	r.produce()
	for i := range p.count {
		relay := &relay{name: string(rune('a' + i))}
		r.relays = append(r.relays, relay)
		r.start(relay)
	}
	return r
}

// connect is a pool for all producers and some more.
func connect(t *testing.T, url string, address func() string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = writerCount + 4
	if address != nil {
		config.BeforeConnect = func(_ context.Context, conn *pgx.ConnConfig) error {
			moved, err := pgx.ParseConfig(address())
			if err == nil {
				conn.Config = moved.Config
			}
			return err
		}
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// produce starts the producers. They have choices of their own, so that they do not depend on when faults ask for
// random moments.
func (r *run) produce() {
	r.Helper()
	ledger := &ledger{committed: make(map[uuid.UUID]time.Time)}
	load, count, err := r.oracle.load(r.Context(), ledger)
	if err != nil {
		r.Fatal(err)
	}
	choose := rand.New(rand.NewPCG(r.seed, 2))
	producers := startProducers(r.Context(), count, load, ledger, choose)
	r.Cleanup(func() { _ = producers.finish() }) // a test that ends early leaves them behind
	r.producers = producers
	r.producers.ask(r.share())
}

// command starts a command of the program that is no relay.
func (r *run) command(name string, args ...string) *process.Process {
	r.Helper()
	return process.Start(r.T, r.file(name+".log"), nil, r.program, append([]string{name, "--from", cmp.Or(r.through, r.url)}, args...)...)
}

func (r *run) file(name string) string { return filepath.Join(r.folder, name) }

// share is how many events are emitted for each fault.
func (r *run) share() int { return r.events/(r.faults+1) + 1 }

// start begins a new life of a relay and waits until it relays.
func (r *run) start(relay *relay) {
	r.Helper()
	r.awaitPooler()
	r.spawn(relay, "relay")
	r.await("the relay to start", func() bool {
		switch {
		case !relay.Ended():
		case r.missedPooler(relay):
			r.awaitPooler()
			r.spawn(relay, "relay")
		default:
			r.Fatalf("relay %s ended at its start: %v\n%s", relay.name, relay.Err(), relay.Tail())
		}
		return relay.Logs("relay started")
	})
}

// awaitPooler waits until the pooler, if there is one, has noticed that the server is back: a relay does not start
// without a database.
func (r *run) awaitPooler() {
	r.Helper()
	if r.through == "" {
		return
	}
	r.await("the pooler to answer", func() bool {
		conn, err := pgx.Connect(r.Context(), r.through)
		if err != nil {
			return false
		}
		defer func() { _ = conn.Close(r.Context()) }() // it has answered, or not
		_, err = conn.Exec(r.Context(), `SELECT 1`, pgx.QueryExecModeSimpleProtocol)
		return err == nil
	})
}

// missedPooler reports whether a program ended because the pooler was not there at its start. PgBouncer may end a moment after a
// client was killed, and is started again; whoever supervises the program does the same.
func (r *run) missedPooler(relay *relay) bool {
	return r.through != "" && relay.Logs("cannot reach the database")
}

func (r *run) spawn(relay *relay, command string) {
	r.Helper()
	relay.lives++
	relay.life = &Incarnation{Name: fmt.Sprintf("%s.%d", relay.name, relay.lives)}
	inbox := r.inbox
	if relay.inbox != nil {
		inbox = relay.inbox
	}
	to, stdout, err := inbox.open(relay, relay.life)
	if err != nil {
		r.Fatal(err)
	}
	defer func() { _ = stdout.Close() }() // the process has its own
	program := cmp.Or(relay.program, r.program)
	relay.Process = process.Start(r.T, r.file(relay.life.Name+".log"), stdout, program, append([]string{
		command, "--from", cmp.Or(r.through, r.url), "--layout", r.layout, "--to", to, "--lease", r.lease.String(),
		"--poll", poll.String(), "--batch-size", strconv.Itoa(batchSize), "--concurrency", strconv.Itoa(concurrency),
	}, relay.flags...)...)
}

func (r *run) check(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// terminate ends a relay as an operator does.
func (r *run) terminate(relay *relay) {
	r.Helper()
	relay.Signal(r.T, syscall.SIGTERM)
	relay.MustSucceed(r.T)
}

// await looks until something holds, now and then and whenever something arrives. What does not in time fails the test.
func (r *run) await(what string, holds func() bool) {
	r.Helper()
	if !r.comes(holds) {
		for _, relay := range r.relays {
			r.Log(relay.Tail())
		}
		r.Fatalf("waited in vain for %s; the producers say: %v", what, r.producers.trouble())
	}
}

// comes looks until something holds, and reports false if it does not in time.
func (r *run) comes(holds func() bool) bool {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for deadline := time.Now().Add(process.Patience); !holds(); {
		if time.Now().After(deadline) {
			return false
		}
		select {
		case <-ticker.C:
		case <-r.inbox.letters():
		}
	}
	return true
}

// arrives waits until a mailbox has everything that is committed by now. What is missing is for the verdict to name.
func (r *run) arrives(mailbox *mailbox, what string) bool {
	r.Helper()
	missing := r.producers.sofar()
	if !r.comes(func() bool {
		missing = mailbox.missing(missing)
		return len(missing) == 0
	}) {
		r.Errorf("waited in vain for %d events of %s", len(missing), what)
		return false
	}
	return true
}

// undelivered is how many events are committed and not settled.
func (r *run) undelivered() int {
	r.Helper()
	n, err := r.oracle.undelivered(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	return n
}

// finish stops everything, lets the program drain what is left and returns the verdict.
func (r *run) finish(limits Limits, triedOnce bool) *Report {
	r.Helper()
	if err := r.producers.finish(); err != nil {
		r.Fatal(err)
	}
	if n := r.producers.repeated; n > 0 {
		r.Logf("%d commits were answered by an error and had happened", n)
	}
	for _, relay := range r.relays {
		r.terminate(relay)
	}
	if triedOnce {
		r.checkNothingHeld()
	}
	drain := &relay{name: "drain"}
	for again := true; again; again = drain.Wait(r.T) != 0 && r.missedPooler(drain) {
		r.awaitPooler()
		r.spawn(drain, "drain")
	}
	drain.MustSucceed(r.T)

	report := r.judge(r.inbox, limits)
	problems, err := r.oracle.problems(r.Context(), r.producers.committed, triedOnce)
	if err != nil {
		r.Fatal(err)
	}
	for _, problem := range problems {
		r.Error(problem)
	}
	if committed, rolledBack := len(r.producers.committed), r.producers.rolledBack; committed < r.events || rolledBack == 0 {
		r.Errorf("%d events committed, %d rolled back: too few to prove anything", committed, rolledBack)
	}
	return report
}

// judge holds what arrived against what was committed, and fails the test over the difference.
func (r *run) judge(inbox inbox, limits Limits) *Report {
	r.Helper()
	arrived, spoiled, err := inbox.deliveries()
	r.check(err)
	history := History{Committed: r.producers.committed, Deliveries: arrived, Spoiled: spoiled}
	report := history.Judge()
	for _, problem := range report.Problems(limits) {
		r.Error(problem)
	}
	return report
}

// checkNothingHeld is for relays that were all asked to end: what they did not publish they must have given back, not
// left to the end of a lease.
func (r *run) checkNothingHeld() {
	r.Helper()
	held, err := r.oracle.held(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	if held > 0 {
		// Not an error to go on after: the drain would wait for the leases.
		r.Fatalf("%d rows or shards are held by relays that have ended", held)
	}
}
