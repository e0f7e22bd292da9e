//go:build unix

package chaos

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/internal/testing/process"
	"github.com/packfinderz/outbox/pgstream"
)

// handOverLease outlasts what a busy machine does to a relay, so that no lease runs out, and lets shards be handed over in
// a third of it.
const handOverLease = 15 * time.Second

// TestUpgrade changes a stream over to today's program while producers write: migrate up beside a relay of the version
// before, then a relay of each version, then today's alone. Nothing is lost, the events of a key arrive in order, and no
// relay ends by itself. What may come twice is the page that the old relay had in hand at the migration.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	previous := process.Previous(t)
	r := newRun(t, plan{
		program: previous, url: pgtest.URL(t), layout: pgstream.LayoutName, count: 1, think: 20 * time.Millisecond, steady: true,
		events: 3000, lease: handOverLease, seed: seed(t),
	})
	u := &upgrade{run: r, previous: previous}
	older := r.relays[0]
	older.program = previous
	u.emit()
	u.works(older)

	r.program = process.Build(t)
	older.life.Fault = 1 // the migration
	r.command("migrate", "up").MustSucceed(t)
	u.emit()
	u.works(older)

	newer := &relay{name: "newer"}
	r.relays = append(r.relays, newer)
	r.start(newer)
	u.shared(older, newer)
	u.works(older)
	u.works(newer)
	// A relay of the version before may be started again while the others are changed.
	r.terminate(older)
	r.start(older)
	u.emit()
	u.shared(older, newer)
	u.works(older)
	u.works(newer)
	r.terminate(older)

	r.relays = []*relay{newer}
	u.works(newer)
	r.await("the producers' last events", func() bool {
		if r.producers.done() < r.events {
			r.producers.flood()
		}
		return r.producers.done() >= r.events && r.producers.idle()
	})
	r.check(r.producers.finish())
	r.producers.commit(u.emitted)
	report := r.finish(Limits{PerFault: inFlight}, false)
	t.Logf("%d events, %d of them by the program and the function of the version before: lost %d, twice %d, inverted %d",
		report.Events, len(u.emitted), len(report.Lost), report.Twice, len(report.Inversions))
}

// upgrade is a run with relays of two versions.
type upgrade struct {
	*run
	previous string // the program of the version before
	// emitted are the events of one key, in order, that others than the producers emit: the program of the version
	// before, and the function in the database.
	emitted []uuid.UUID
}

// works waits until a relay has delivered more than it can have had in hand, and none has ended.
func (u *upgrade) works(at *relay) {
	u.Helper()
	before := u.inbox.size(at)
	u.await("relay "+at.name+" to deliver", func() bool {
		u.keepBusy()
		u.alive()
		return u.inbox.size(at)-before > (inFlight+batchSize)*lineBytes
	})
}

// shared waits until both versions have shards.
func (u *upgrade) shared(relays ...*relay) {
	u.Helper()
	stream, ok := u.oracle.(*stream)
	if !ok {
		u.Fatalf("%T is not the stream", u.oracle)
	}
	u.await("every relay to have a share", func() bool {
		u.keepBusy()
		u.alive()
		for _, relay := range relays {
			had, err := stream.holdings(u.Context(), relay.PID())
			u.check(err)
			if len(had) == 0 {
				return false
			}
		}
		return true
	})
}

// alive fails the test if a relay has ended.
func (u *upgrade) alive() {
	u.Helper()
	for _, relay := range u.relays {
		if relay.Ended() {
			u.Fatalf("relay %s has ended by itself: %v\n%s", relay.name, relay.Err(), relay.Tail())
		}
	}
}

// emit has the program of the version before and the function emit some events, in turn.
func (u *upgrade) emit() {
	u.Helper()
	const key, topic, kind = "emitted-otherwise", "accounts", "account_changed"
	payload := func() string { return fmt.Sprintf(`{"version": %d}`, len(u.emitted)+1) }
	for range 3 {
		id := uuid.New()
		process.Start(u.T, u.file("emit.log"), nil, u.previous, "emit", "--from", u.url, "--id", id.String(),
			"--topic", topic, "--type", kind, "--key", key, "--payload", payload()).MustSucceed(u.T)
		u.emitted = append(u.emitted, id)
		u.check(u.pool.QueryRow(u.Context(), `SELECT outbox_emit($1, $2::jsonb, $3, $4)`, kind, payload(), topic, key).Scan(&id))
		u.emitted = append(u.emitted, id)
	}
}
