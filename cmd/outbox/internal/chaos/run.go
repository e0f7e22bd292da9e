//go:build unix

package chaos

// One run: a table, its producers and two relay processes, from the first event to the verdict.

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/pgstore"
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
	layout  pgstore.Layout
	events  int // at least
	faults  int // that meet events in flight
	lease   time.Duration
	seed    uint64
}

// relay is one of the two relays: a process at a time, and one file for all of them.
type relay struct {
	*process
	name  string
	path  string
	lives []life
}

// current is the life that runs.
func (r *relay) current() *Incarnation { return r.lives[len(r.lives)-1].of }

// run is a plan being carried out.
type run struct {
	*testing.T
	plan
	pool      *pgxpool.Pool
	table     *table
	producers *producers
	choose    *rand.Rand
	folder    string
	relays    []*relay
	faulted   int // faults made
	met       int // of them, those that met events in flight
}

// newRun makes the table with the program, starts the load and both relays.
func newRun(t *testing.T, p plan) *run {
	t.Helper()
	config, err := pgxpool.ParseConfig(p.url)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = producerCount + 2
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	r := &run{
		T: t, plan: p, pool: pool, table: &table{pool, p.layout}, folder: t.ArtifactDir(),
		choose: rand.New(rand.NewPCG(p.seed, 1)), //nolint:gosec // choices that can be repeated, not secrets
	}
	t.Logf("seed %d", p.seed)
	startProcess(t, r.file("migrate.log"), p.program, "migrate", "up", "--from", p.url, "--layout", p.layout.Name).mustSucceed(t)
	// The producers have choices of their own, so that they do not depend on when faults ask for random moments.
	choose := rand.New(rand.NewPCG(p.seed, 2)) //nolint:gosec // as above
	if r.producers, err = startProducers(t.Context(), pool, p.layout, choose); err != nil {
		t.Fatal(err)
	}
	r.producers.ask(r.share())
	for _, name := range []string{"a", "b"} {
		relay := &relay{name: name, path: r.file(name + ".jsonl")}
		r.relays = append(r.relays, relay)
		r.start(relay)
	}
	return r
}

func (r *run) file(name string) string { return filepath.Join(r.folder, name) }

// share is how many events are emitted for each fault.
func (r *run) share() int { return r.events/(r.faults+1) + 1 }

// start begins a new life of a relay and waits until it relays.
func (r *run) start(relay *relay) {
	r.Helper()
	r.spawn(relay, "relay")
	r.await("the relay to start", func() bool {
		if relay.ended() {
			r.Fatalf("relay %s ended at its start: %v\n%s", relay.name, relay.err, relay.tail())
		}
		return relay.logs("relay started")
	})
}

func (r *run) spawn(relay *relay, command string) {
	r.Helper()
	from, err := endOfLines(relay.path)
	if err != nil {
		r.Fatal(err)
	}
	name := fmt.Sprintf("%s.%d", relay.name, len(relay.lives)+1)
	relay.lives = append(relay.lives, life{from, &Incarnation{Name: name}})
	relay.process = startProcess(r.T, r.file(name+".log"), r.program, command,
		"--from", r.url, "--layout", r.layout.Name, "--to", "file:"+relay.path, "--lease", r.lease.String(),
		"--poll", poll.String(), "--batch-size", strconv.Itoa(batchSize), "--concurrency", strconv.Itoa(concurrency))
}

// terminate ends a relay as an operator does.
func (r *run) terminate(relay *relay) {
	r.Helper()
	relay.signal(r.T, syscall.SIGTERM)
	relay.mustSucceed(r.T)
}

// await looks until something holds. What does not in time fails the test.
func (r *run) await(what string, holds func() bool) {
	r.Helper()
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for deadline := time.Now().Add(patience); !holds(); {
		if time.Now().After(deadline) {
			for _, relay := range r.relays {
				r.Log(relay.tail())
			}
			r.Fatalf("waited in vain for %s", what)
		}
		<-ticker.C
	}
}

// undelivered is how many events are committed and not settled.
func (r *run) undelivered() int {
	r.Helper()
	n, err := r.table.undelivered(r.Context())
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
		r.Logf("%d commits were answered by an error and had happened; they were emitted again", n)
	}
	for _, relay := range r.relays {
		r.terminate(relay)
	}
	if triedOnce {
		r.checkNothingHeld()
	}
	drain := &relay{name: "drain", path: r.file("drain.jsonl")}
	r.spawn(drain, "drain")
	drain.mustSucceed(r.T)

	history := History{Committed: r.producers.committed}
	for _, relay := range append(r.relays, drain) {
		deliveries, spoiled, err := readLines(relay.path, relay.lives)
		if err != nil {
			r.Fatal(err)
		}
		history.Deliveries = append(history.Deliveries, deliveries...)
		history.Spoiled = append(history.Spoiled, spoiled...)
	}
	report := history.Judge()
	problems, err := r.table.problems(r.Context(), r.producers.committed, triedOnce)
	if err != nil {
		r.Fatal(err)
	}
	for _, problem := range append(report.Problems(limits), problems...) {
		r.Error(problem)
	}
	if committed, rolledBack := len(r.producers.committed), len(r.producers.rolledBack); committed < r.events || rolledBack == 0 {
		r.Errorf("%d events committed, %d rolled back: too few to prove anything", committed, rolledBack)
	}
	return report
}

// checkNothingHeld is for relays that were all asked to end: what they did not publish they must have given back, not
// left to the end of a lease.
func (r *run) checkNothingHeld() {
	r.Helper()
	held, err := r.table.count(r.Context(), r.table.held())
	if err != nil {
		r.Fatal(err)
	}
	if held > 0 {
		// Not an error to go on after: the drain would wait for the leases.
		r.Fatalf("%d rows are held by relays that have ended", held)
	}
}
