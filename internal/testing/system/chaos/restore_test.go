//go:build unix

package chaos

import (
	"encoding/json"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/internal/testing/process"
	"github.com/packfinderz/outbox/pgstream"
)

// exitUsage is the exit code of a program that was asked for something it cannot do.
const exitUsage = 2

// TestRestore moves a stream to another server with pg_dump, under load: a relay is killed, the dump is made while
// producers write, and they go on with the new server at once. Relays refuse to go on there; a repair in the middle of the
// load lets them. Everything that the new server has arrives, in order, and no more of it twice than was in flight at the
// kill or was reported by the repair.
func TestRestore(t *testing.T) {
	t.Parallel()
	moves := 1
	if os.Getenv("OUTBOX_CHAOS") == "long" {
		moves = 5
	}
	const share = 2000
	r := newRun(t, plan{
		program: process.Build(t), url: pgtest.URL(t), layout: pgstream.LayoutName, count: 1, events: share,
		lease: shortLease, seed: seed(t),
	})
	limits := Limits{ByFault: make(map[int]int)}
	for number := 1; number <= moves; number++ {
		limits.ByFault[number] = inFlight + r.move(number, share)
	}
	r.check(r.producers.finish())
	if mailbox, ok := r.inbox.(*mailbox); ok {
		r.arrives(mailbox, "what the last server has")
	}
	r.terminate(r.relays[0])
	report := r.judge(r.inbox, limits)
	t.Logf("%d events, moved %d times: lost %d, twice %d, inverted %d", report.Events, moves, len(report.Lost), report.Twice, len(report.Inversions))
}

// move takes the stream to another server. It returns how many events the repair has in doubt.
func (r *run) move(number, share int) (doubtful int) {
	r.Helper()
	relay := r.relays[0]
	r.producers.ask(share)
	r.atWork(share / 4)
	relay.life.Fault = number
	relay.Signal(r.T, syscall.SIGKILL)
	relay.Wait(r.T)
	r.producers.ask(share)
	r.url = pgtest.Restore(r.T, r.url)
	r.check(r.producers.finish())

	r.pool = connect(r.T, r.url, nil)
	r.oracle = &stream{pool: r.pool, think: r.think}
	kept := r.forget()
	r.produce()
	r.producers.commit(kept)
	r.refuses(relay)
	r.await("producers to write on", func() bool { return r.producers.done() > len(kept)+share/10 })
	r.producers.ask(share)
	r.refuses(relay)
	doubtful = r.repair()
	r.start(relay)
	before := r.inbox.size(relay)
	r.await("the relay to go on", func() bool { return r.inbox.size(relay) > before })
	return doubtful
}

// forget forgets the events that the new server does not have: they were committed after the dump's snapshot.
func (r *run) forget() (kept []uuid.UUID) {
	r.Helper()
	rows, err := r.pool.Query(r.Context(), `SELECT id FROM outbox_stream`)
	r.check(err)
	defer rows.Close()
	for rows.Next() {
		var id uuid.UUID
		r.check(rows.Scan(&id))
		kept = append(kept, id)
	}
	r.check(rows.Err())
	there := make(map[uuid.UUID]bool, len(kept))
	for _, id := range kept {
		there[id] = true
		if _, committed := r.producers.committed[id]; !committed {
			r.Errorf("the new server has event %s, which was not committed", id)
		}
	}
	if mailbox, ok := r.inbox.(*mailbox); ok {
		mailbox.forget(func(id uuid.UUID) bool { return !there[id] })
	}
	r.Logf("%d of %d events are in the dump", len(kept), r.producers.done())
	return kept
}

// forget takes events off the record.
func (m *mailbox) forget(gone func(uuid.UUID) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.arrived = slices.DeleteFunc(m.arrived, func(d Delivery) bool { return gone(d.ID) })
}

// refuses starts a relay that ends at once, with a hint.
func (r *run) refuses(relay *relay) {
	r.Helper()
	r.spawn(relay, "relay")
	if code := relay.Wait(r.T); code != exitUsage || !relay.Logs("outbox repair") {
		r.Fatalf("exit code %d of a relay on a restored stream, without the hint\n%s", code, relay.Tail())
	}
}

// repair repairs the stream and returns how many events it has in doubt.
func (r *run) repair() (doubtful int) {
	r.Helper()
	output, err := os.Create(r.file("repair.json"))
	r.check(err)
	defer func() { _ = output.Close() }() // the process has its own
	begun := time.Now()
	process.Start(r.T, r.file("repair.log"), output, r.program, "repair", "--from", r.url, "--json").MustSucceed(r.T)
	content, err := os.ReadFile(output.Name())
	r.check(err)
	var repaired struct {
		BySubscription []struct {
			Doubtful int `json:"doubtful"`
		} `json:"bySubscription"`
	}
	r.check(json.Unmarshal(content, &repaired))
	for _, s := range repaired.BySubscription {
		doubtful += s.Doubtful
	}
	r.Logf("repaired in %v: %s", time.Since(begun), content)
	return doubtful
}
