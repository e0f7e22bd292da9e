//go:build unix

package chaos

import (
	"testing"

	"github.com/packfinderz/outbox/internal/testing/pgbouncer"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/internal/testing/process"
)

// poolerServers is how many sessions of the server the relays share. Those of a layout that locks rows
// each need some for as long as their batches are out.
const poolerServers = 16

// TestPooler is row 43: relays behind a pooler in transaction mode are killed, and the server crashes
// behind the pooler, which keeps their connections. Nothing is lost, and the pooler's sessions are as new.
func TestPooler(t *testing.T) {
	t.Parallel()
	program := process.Build(t)
	for _, layout := range chosenLayouts(false) {
		t.Run(layout+" kill", func(t *testing.T) {
			t.Parallel()
			p := plan{program: program, url: pgtest.URL(t), layout: layout, count: 2, events: 3000, faults: 3, lease: shortLease, seed: seed(t)}
			p.through = pgbouncer.Start(t, p.url, pgbouncer.Config{Mode: pgbouncer.Transaction, Servers: poolerServers})
			r := newRun(t, p)
			r.each(r.kill)
			r.finish(Limits{PerFault: inFlight, Spoiled: r.faulted}, false)
			pgbouncer.AssertNoTraces(t, p.url, p.through, poolerServers)
		})
		t.Run(layout+" restart", func(t *testing.T) {
			t.Parallel()
			server := pgtest.Server(t, map[string]string{
				"synchronous_commit": "on", "fsync": "on", "full_page_writes": "on", "wal_writer_delay": "10ms",
			})
			p := plan{program: program, url: server.URL("postgres"), layout: layout, count: 2, events: 1000, faults: 1, lease: shortLease, seed: seed(t)}
			p.through = pgbouncer.Start(t, p.url, pgbouncer.Config{Mode: pgbouncer.Transaction, Servers: poolerServers})
			r := newRun(t, p)
			r.each(r.restarting(server))
			r.finish(Limits{PerFault: len(r.relays) * (inFlight + r.oracle.undone())}, false)
		})
	}
}
