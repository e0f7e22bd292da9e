//go:build unix

package restores

// The stream that is taken elsewhere. It has events in every state there is.

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/internal/testing/pgserver"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/pgstream"
)

const (
	// age is how many transactions the server has seen before the stream begins. A new server has seen about a thousand,
	// and a restore that inserts row by row adds some thousands.
	age = 30_000
	// The keys of events that are not delivered at once.
	poisonKey = "poison" // dead
	stuckKey  = "stuck"  // refused once, next tried in an hour; later ones wait behind it
	laterKey  = "later"  // due in an hour
)

// source is a stream in which every subscription has delivered some events, has windows half read, and has events that
// are dead, parked, delayed and unread.
type source struct {
	*stage
	server  *pgserver.Server
	writers *writers

	// What is so at the end, by subscription: what has arrived, and what is not settled.
	delivered map[string]map[uuid.UUID]bool
	unread    map[string]map[uuid.UUID]bool
	lowest    int64  // the lowest transaction id of an event
	end       int64  // one past the highest transaction id
	archive   string // a folder with the server's log, where it has one

	dumps [dumpKinds]dumpFile
}

// dumpFile is a dump that is made when it is first needed.
type dumpFile struct {
	once sync.Once
	path string
}

// newSource makes one, on a server of its own.
func newSource(t *testing.T, program string, nested bool, settings map[string]string) *source {
	t.Helper()
	server := pgtest.Server(t, settings)
	pgtest.Exec(t, pgtest.Connect(t, server.URL("postgres")), `CREATE DATABASE shop`)
	s := &source{
		stage: newStage(t, program, server.URL("shop")), server: server, writers: newWriters(nested),
		delivered: map[string]map[uuid.UUID]bool{everything: {}, filtered: {}},
		unread:    make(map[string]map[uuid.UUID]bool),
	}
	s.burn(age)
	s.run("migrate", "up")
	s.run("subscriptions", "create", filtered, "--topic", ordersTopic)
	s.refuseSome()
	s.deliver(300)
	s.halfRead(400)
	s.leaveUnread(200)
	s.record()
	return s
}

// emitSpecial writes an event that is not delivered at once.
func (s *source) emitSpecial(key string, more map[string]any) {
	s.Helper()
	s.writers.special(s.T, s.pool, ordersTopic, key, more)
}

// refuseSome has a webhook that refuses two events: one is dead, one is tried again in an hour.
func (s *source) refuseSome() {
	s.Helper()
	s.writers.write(s.T, s.pool, 40)
	s.emitSpecial(poisonKey, map[string]any{"max_attempts": 1})
	s.emitSpecial(stuckKey, nil)
	s.emitSpecial(laterKey, map[string]any{"not_before": time.Now().Add(time.Hour)})
	for _, subscription := range subscriptions() {
		var mu sync.Mutex
		hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if key := r.Header.Get("outbox-key"); key == poisonKey || key == stuckKey {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			if id, err := uuid.Parse(r.Header.Get("outbox-event-id")); err == nil {
				mu.Lock()
				defer mu.Unlock()
				s.delivered[subscription][id] = true
			}
		}))
		relay := s.start(nil, "relay", "--subscription", subscription, "--to", hook.URL+"#allow-private=true",
			"--base-delay", "1h", "--max-delay", "2h", "--poll", "100ms", "--lease", "3s")
		s.await("a dead event, one to be tried again and one for later", func() bool {
			parked := s.parked(subscription)
			return parked["dead"] == 1 && parked["retry"] == 2 && s.behind(subscription) == 0
		}, relay)
		s.terminate(relay)
		hook.Close()
	}
}

// deliver delivers what there is to files.
func (s *source) deliver(n int) {
	s.Helper()
	s.writers.write(s.T, s.pool, n)
	s.emitSpecial(stuckKey, nil)
	for _, subscription := range subscriptions() {
		relay := s.relay(subscription)
		s.await("a backlog of none", func() bool { return s.behind(subscription) == 0 }, relay)
		s.terminate(relay)
		for _, a := range s.arrivals(subscription) {
			s.delivered[subscription][a.ID] = true
		}
	}
}

// halfRead kills relays in the middle of their windows: their pipe is read for a while, and then no more.
func (s *source) halfRead(n int) {
	s.Helper()
	const lines = 60
	s.writers.write(s.T, s.pool, n)
	for _, subscription := range subscriptions() {
		reader, writer, err := os.Pipe()
		if err != nil {
			s.Fatal(err)
		}
		relay := s.start(writer, "relay", "--subscription", subscription, "--to", "stdout:",
			"--batch-size", "5", "--concurrency", "1", "--poll", "100ms", "--lease", "3s")
		_ = writer.Close() // the process has its own
		scanner := bufio.NewScanner(reader)
		take := func() bool {
			if !scanner.Scan() {
				return false
			}
			var a arrival
			if err := json.Unmarshal(scanner.Bytes(), &a); err == nil {
				s.delivered[subscription][a.ID] = true
			}
			return true
		}
		for range lines {
			if !take() {
				s.Fatalf("the relay ended: %v\n%s", scanner.Err(), relay.Tail())
			}
		}
		s.await("a window half read", func() bool {
			return ask[int](s.stage, `SELECT count(*) FROM outbox_shards WHERE subscription = $1 AND s2 IS NOT NULL AND pos > 0`, subscription) > 0
		}, relay)
		relay.Signal(s.T, syscall.SIGKILL)
		relay.Wait(s.T)
		for take() { // what was on its way has arrived, too
		}
		_ = reader.Close() // nobody writes to it any more
		if ask[int](s.stage, `SELECT count(*) FROM outbox_shards WHERE subscription = $1 AND s2 IS NOT NULL AND pos > 0`, subscription) == 0 {
			s.Fatal("no window is half read")
		}
	}
}

// leaveUnread writes events that no relay sees.
func (s *source) leaveUnread(n int) {
	s.Helper()
	s.writers.write(s.T, s.pool, n)
	s.emitSpecial(stuckKey, nil)
	s.emitSpecial(laterKey, map[string]any{"not_before": time.Now().Add(time.Hour)})
}

// record notes how things are, and that everything that is needed is there.
func (s *source) record() {
	s.Helper()
	topics := s.log()
	for _, subscription := range subscriptions() {
		s.unread[subscription] = s.unsettled(subscription)
		for id, topic := range topics {
			if takes(subscription, topic) && !s.unread[subscription][id] && !s.delivered[subscription][id] {
				s.Errorf("%s: event %s is settled and never arrived", subscription, id)
			}
		}
		if len(s.unread[subscription]) < 100 || len(s.delivered[subscription]) < 100 {
			s.Fatalf("%s: %d events unread, %d delivered: too few to prove anything",
				subscription, len(s.unread[subscription]), len(s.delivered[subscription]))
		}
	}
	if w := s.writers; w.nested && (w.prepared == 0 || w.inside == 0 || w.undone == 0) {
		s.Fatalf("%d transactions were prepared, %d events written in savepoints and %d undone", w.prepared, w.inside, w.undone)
	}
	s.lowest = ask[int64](s.stage, `SELECT min(xid::text::bigint) FROM outbox_stream`)
	s.end = s.xmax()
}

// behind is how many events a subscription has not read.
func (s *stage) behind(subscription string) (n int64) {
	s.Helper()
	for _, shard := range s.lag(subscription).Shards {
		n += shard.Events
	}
	return n
}

// parked is how many events of a subscription are parked, by state.
func (s *stage) parked(subscription string) map[string]int64 {
	s.Helper()
	return s.lag(subscription).Parked
}

func (s *stage) lag(subscription string) *pgstream.Lag {
	s.Helper()
	lag, err := pgstream.Stream{}.Lag(s.Context(), s.pool, subscription)
	if err != nil {
		s.Fatal(err)
	}
	return lag
}

// dump is the path of a dump of this kind.
func (s *source) dump(t *testing.T, kind dumpKind) string {
	t.Helper()
	d := &s.dumps[kind]
	d.once.Do(func() {
		path := filepath.Join(s.folder, kind.String()+".dump")
		args := append(kind.dumpArgs(), "--no-owner", "--file", path, "--dbname", s.url)
		pgtest.Program(t, "pg_dump", nil, args...)
		d.path = path
	})
	return d.path
}
