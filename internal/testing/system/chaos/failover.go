//go:build unix

package chaos

// A primary with a synchronous standby and an asynchronous one: one of them takes its place when it crashes.

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/internal/streamsql"
	"github.com/packfinderz/outbox/internal/testing/pgserver"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/internal/testing/process"
	"github.com/packfinderz/outbox/outboxtest/await"
)

// trio are the three servers.
type trio struct {
	*testing.T
	primary, synchronous, asynchronous *pgserver.Server
	url                                atomic.Pointer[string]
}

// newTrio starts a primary and its standbys. A commit is one when the synchronous standby has it.
func newTrio(t *testing.T) *trio {
	t.Helper()
	s := &trio{T: t, primary: pgtest.Server(t, map[string]string{
		"synchronous_commit": "on", "fsync": "on", "full_page_writes": "on", "wal_writer_delay": "10ms",
	})}
	s.follow()
	return s
}

// follow gives the primary two new standbys.
func (s *trio) follow() {
	s.Helper()
	s.synchronous = pgtest.Standby(s, s.primary, map[string]string{"cluster_name": "synchronous"})
	s.asynchronous = pgtest.Standby(s, s.primary, map[string]string{"cluster_name": "asynchronous"})
	pool := s.connect(s.primary)
	s.until(pool, `SELECT count(*) = 2 FROM pg_stat_replication WHERE state = 'streaming'`)
	s.exec(pool, `ALTER SYSTEM SET synchronous_standby_names = 'synchronous'`)
	s.exec(pool, `SELECT pg_reload_conf()`)
	s.until(pool, `SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync')`)
	url := pgserver.HostsURL("postgres", s.primary, s.synchronous, s.asynchronous)
	s.url.Store(&url)
}

func (s *trio) address() string { return *s.url.Load() }

// cut lets the asynchronous standby get no more of what the primary writes.
func (s *trio) cut() {
	s.Helper()
	pool := s.connect(s.asynchronous)
	s.exec(pool, `ALTER SYSTEM SET primary_conninfo = ''`)
	s.exec(pool, `SELECT pg_reload_conf()`)
	s.until(pool, `SELECT NOT EXISTS (SELECT FROM pg_stat_wal_receiver)`)
}

// crash ends the primary, and has a standby take its place. The others are of no more use.
func (s *trio) crash(heir, other *pgserver.Server) {
	s.Helper()
	if err := s.primary.Halt(s.Context(), pgserver.Immediate); err != nil {
		s.Fatal(err)
	}
	pool := s.connect(heir)
	s.exec(pool, `ALTER SYSTEM RESET ALL`)
	s.exec(pool, `SELECT pg_promote()`)
	for _, server := range []*pgserver.Server{s.primary, other} {
		if err := server.Stop(); err != nil {
			s.Fatal(err)
		}
	}
	s.primary = heir
}

func (s *trio) connect(server *pgserver.Server) *pgxpool.Pool {
	s.Helper()
	return pgtest.Connect(s, server.URL("postgres"))
}

func (s *trio) exec(pool *pgxpool.Pool, sql string) {
	s.Helper()
	pgtest.Exec(s, pool, sql)
}

func (s *trio) until(pool *pgxpool.Pool, sql string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), process.Patience)
	defer cancel()
	for holds := false; !holds; pause(ctx, look) {
		if err := pool.QueryRow(ctx, sql).Scan(&holds); err != nil {
			s.Fatalf("%s: %v", sql, err)
		}
	}
}

// failover is a run on three servers.
type failover struct {
	*run
	servers *trio
	// orphaning are the faults that may leave deliveries without an event, and told how many the relays found.
	orphaning map[int]bool
	told      int64
}

// promote crashes the primary under load and promotes a standby, every other time the asynchronous one, which lacks the
// last moments. Both relays must find it by themselves and go on.
func (f *failover) promote(number int) (met bool) {
	f.Helper()
	heir, other := f.servers.synchronous, f.servers.asynchronous
	late := number%2 == 0
	if late {
		heir, other = other, heir
		f.orphaning[number] = true
		f.servers.cut()
	}
	f.victim()
	if late {
		// Not before both have delivered something that the heir does not have.
		before := f.sizes()
		for i, relay := range f.relays {
			f.await("relay "+relay.name+" to deliver what the standby lacks", func() bool {
				f.keepBusy()
				return f.inbox.size(relay) > before[i]+batchSize*lineBytes
			})
		}
	}
	f.producers.ask(f.share()) // so that producers and relays are at work when it happens
	busy := f.undelivered() > 0 || !f.producers.idle()
	for _, relay := range f.relays {
		relay.life.Fault = number
	}
	f.servers.crash(heir, other)
	before := f.sizes()
	for i, relay := range f.relays {
		f.await("relay "+relay.name+" to go on after the promotion", func() bool {
			f.keepBusy()
			return f.inbox.size(relay) > before[i]
		})
		met = met || relay.Logs("settle failed", "could not be settled", "the store failed")
	}
	f.await("the producers to go on", f.producers.idle)
	f.settleAccounts(late)
	f.servers.follow()
	f.url = f.servers.address()
	for _, relay := range f.relays {
		f.terminate(relay)
		f.start(relay)
	}
	return busy && met
}

// settleAccounts takes what the new primary lacks out of the books. It lacks nothing if it was synchronous.
func (f *failover) settleAccounts(late bool) {
	f.Helper()
	there := f.there()
	f.producers.mu.Lock()
	lost := 0
	for id := range f.producers.committed {
		if !there[id] {
			delete(f.producers.committed, id)
			lost++
		}
	}
	f.producers.mu.Unlock()
	if lost > 0 && !late {
		f.Errorf("%d events were committed, and the synchronous standby does not have them", lost)
	}
	var noticed *time.Time
	var from, to, repeated, orphaned int64
	var relays int
	var more bool
	// One that is late, on a busy machine, has not looked yet.
	await.Until(f, "all relays to notice the promotion", func() bool {
		f.check(f.pool.QueryRow(f.Context(), streamsql.Names("", streamsql.Promotion)).
			Scan(&noticed, &from, &to, &relays, &repeated, &orphaned, &more))
		return noticed != nil && relays == len(f.relays)
	})
	f.Logf("promoted, the asynchronous one: %t: %d commits are gone; the relays say that %d events are published again and %d are not there (more: %t)",
		late, lost, repeated, orphaned, more)
	if (orphaned > 0) != late {
		f.Errorf("the relays found %d deliveries without an event", orphaned)
	}
	f.told += orphaned
}

// there are the events that the primary has.
func (f *failover) there() map[uuid.UUID]bool {
	f.Helper()
	rows, err := f.pool.Query(f.Context(), `SELECT id FROM outbox_stream`)
	f.check(err)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	f.check(err)
	there := make(map[uuid.UUID]bool, len(ids))
	for _, id := range ids {
		there[id] = true
	}
	return there
}
