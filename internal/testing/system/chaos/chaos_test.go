//go:build unix

package chaos

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/internal/testing/process"
	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/layouts/shipped"
	"github.com/packfinderz/outbox/pgstream"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	// shortLease lets takeovers happen quickly; it is still far longer than anything a healthy relay does.
	shortLease = 3 * time.Second
	// longLease outlasts a run in which nothing may be left to the end of a lease.
	longLease = 5 * time.Minute
)

// amount is how much of a fault a run has.
type amount struct{ events, faults int }

// fault is a kind of fault, and what it may do.
type fault struct {
	name        string
	short, long amount
	test        func(*testing.T, plan) *result
}

func faults() []fault {
	return []fault{
		{"kill", amount{5000, 5}, amount{50_000, 100}, testKill},
		{"stop", amount{2000, 2}, amount{20_000, 10}, testStop},
		{"terminate", amount{5000, 10}, amount{50_000, 50}, testTerminate},
		{"restart", amount{2000, 2}, amount{20_000, 10}, testRestart},
	}
}

// result is a line of the table.
type result struct {
	run    *run
	report *Report
}

// TestChaos runs every fault on every layout, each with processes, a table and a seed of its own.
func TestChaos(t *testing.T) {
	t.Parallel()
	long := os.Getenv("OUTBOX_CHAOS") == "long"
	program := process.Build(t)
	var mu sync.Mutex
	var lines []string
	t.Cleanup(func() {
		slices.Sort(lines)
		t.Logf("\n%-12s %-10s %8s %7s %7s %6s %6s %10s %8s %8s\n%s", "layout", "fault", "events", "faults", "met",
			"lost", "twice", "max/fault", "inverted", "spoiled", strings.Join(lines, "\n"))
	})
	for _, fault := range faults() {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			for _, layout := range chosenLayouts(long) {
				t.Run(layout, func(t *testing.T) {
					t.Parallel()
					amount := fault.short
					if long {
						amount = fault.long
					}
					got := fault.test(t, plan{
						program: program, layout: layout, count: 2, events: amount.events, faults: amount.faults,
						lease: shortLease, seed: seed(t),
					})
					mu.Lock()
					defer mu.Unlock()
					lines = append(lines, fmt.Sprintf("%-12s %-10s %8d %7d %7d %6d %6d %10d %8d %8d", layout, fault.name, got.report.Events, got.run.faulted,
						got.run.met, len(got.report.Lost), got.report.Twice, got.report.MaxPerFault(), len(got.report.Inversions), len(got.report.Spoiled)))
				})
			}
		})
	}
}

// chosenLayouts are the stream and all queue tables, or in the short form one table for each way to hold a row.
func chosenLayouts(all bool) []string {
	chosen := []string{pgstream.LayoutName}
	held := make(map[layouts.Hold]bool)
	for _, shipped := range shipped.All() {
		if all || !held[shipped.Layout.Hold] {
			held[shipped.Layout.Hold] = true
			chosen = append(chosen, shipped.Layout.Name)
		}
	}
	return chosen
}

func seed(t *testing.T) uint64 {
	t.Helper()
	given := os.Getenv("OUTBOX_CHAOS_SEED")
	if given == "" {
		return rand.Uint64()
	}
	number, err := strconv.ParseUint(given, 10, 64)
	if err != nil {
		t.Fatalf("OUTBOX_CHAOS_SEED is not a number: %v", err)
	}
	return number
}

// testKill is row 2 and 3 of the failures: what a dead relay published and did not settle arrives again, nothing else.
func testKill(t *testing.T, p plan) *result {
	t.Helper()
	p.url = pgtest.URL(t)
	r := newRun(t, p)
	r.each(r.kill)
	return &result{r, r.finish(Limits{PerFault: inFlight, Spoiled: r.faulted}, false)}
}

// testStop is row 4: a relay that slept past its lease does not settle what is no longer its own.
func testStop(t *testing.T, p plan) *result {
	t.Helper()
	p.url = pgtest.URL(t)
	r := newRun(t, p)
	r.each(r.stop)
	return &result{r, r.finish(Limits{PerFault: inFlight}, false)}
}

// testTerminate is row 8: nothing lost, nothing twice, no attempt counted that was not made.
func testTerminate(t *testing.T, p plan) *result {
	t.Helper()
	p.url = pgtest.URL(t)
	p.lease = longLease
	r := newRun(t, p)
	r.each(r.terminated)
	return &result{r, r.finish(Limits{}, true)}
}

// testRestart is row 18: the server crashes under both relays.
func testRestart(t *testing.T, p plan) *result {
	t.Helper()
	// The settings for tests give up commits in a crash; here a commit must be one.
	server := pgtest.Server(t, map[string]string{
		"synchronous_commit": "on", "fsync": "on", "full_page_writes": "on", "wal_writer_delay": "10ms",
	})
	p.url = server.URL("postgres")
	r := newRun(t, p)
	r.each(r.restarting(server))
	return &result{r, r.finish(Limits{PerFault: len(r.relays) * (inFlight + r.oracle.undone())}, false)}
}
