package pgstream

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
)

// modelSeeds are the runs of TestModel: the same every time, so that a failure can be looked
// at again.
const (
	modelSeeds = 6
	modelSteps = 250
	modelKeys  = 6
)

// TestModel does at random what producers, relays, operators and bad luck do. Nothing may be
// lost, the first time of each event must be in the order of its key's commits, and an event
// comes twice only if somebody was killed or had to give way.
func TestModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(modelSeeds) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			m := newModel(t, seed)
			for range modelSteps {
				m.step()
				if wrong := m.miscounted(); wrong > 0 {
					t.Fatalf("%d rows are unread by one way of counting only\n%s", wrong, strings.Join(m.log, "\n"))
				}
			}
			m.finish()
		})
	}
}

// model is a stream with producers and relays in the middle of something.
type model struct {
	*stage
	random    *rand.Rand
	producers map[string]*producer // by the key they have locked
	prepared  map[string]*producer // by the name of the transaction
	relays    []*modelRelay
	excused   map[uuid.UUID]bool // events that may come twice
	log       []string
}

// modelRelay is a store and the batches it has out.
type modelRelay struct {
	store *Store
	out   []outbox.Batch
}

func newModel(t *testing.T, seed uint64) *model {
	t.Helper()
	m := &model{
		stage: sharedStage(t, 2), random: rand.New(rand.NewPCG(seed, 0)),
		producers: make(map[string]*producer), prepared: make(map[string]*producer), excused: make(map[uuid.UUID]bool),
	}
	m.exec(`CREATE TABLE aggregate (key text PRIMARY KEY, n int NOT NULL)`)
	for i := range modelKeys {
		m.exec(`INSERT INTO aggregate VALUES ($1, 0)`, key(i))
	}
	m.join()
	return m
}

func key(i int) string { return "key-" + string(rune('a'+i)) }

// step does one thing.
func (m *model) step() {
	m.Helper()
	switch n := m.random.IntN(100); {
	case n < 25:
		m.produce()
	case n < 40:
		m.end()
	case n < 62:
		m.claimSome()
	case n < 84:
		m.settleSome()
	case n < 88:
		m.ripen()
		for _, relay := range m.relays {
			relay.store.PassTime()
		}
	case n < 90:
		m.join()
	case n < 92:
		m.leave()
	case n < 94:
		m.kill()
	case n < 96:
		m.pass()
	case n < 98:
		m.terminate()
	default:
		m.sweep()
	}
}

func (m *model) note(format string, args ...any) {
	m.log = append(m.log, fmt.Sprintf(format, args...))
}

// produce begins or goes on with a transaction that has locked its key, or emits without one.
func (m *model) produce() {
	m.Helper()
	key := key(m.random.IntN(modelKeys))
	p := m.producers[key]
	if p == nil {
		for _, prepared := range m.prepared {
			if prepared.events[0].key == key {
				return // it has the key's row locked
			}
		}
		p = m.begin()
		if _, err := p.tx.Exec(m.Context(), `UPDATE aggregate SET n = n + 1 WHERE key = $1`, key); err != nil {
			m.Fatal(err)
		}
		m.producers[key] = p
	}
	switch m.random.IntN(4) {
	case 0: // part of it is taken back
		m.inTx(p, `SAVEPOINT part`)
		before := len(p.events)
		p.insert(key)
		m.inTx(p, `ROLLBACK TO part`)
		p.events = p.events[:before]
	case 1:
		m.inTx(p, `SAVEPOINT part`)
		p.insert(key, key)
		m.inTx(p, `RELEASE part`)
	default:
		p.insert(key)
	}
	m.note("insert %s", key)
}

func (m *model) inTx(p *producer, sql string) {
	m.Helper()
	if _, err := p.tx.Exec(m.Context(), sql); err != nil {
		m.Fatal(err)
	}
}

// end commits, rolls back or prepares a transaction.
func (m *model) end() {
	m.Helper()
	for name, p := range m.prepared {
		if m.random.IntN(2) == 0 {
			m.exec(`COMMIT PREPARED '` + name + `'`)
			m.committed = append(m.committed, p.events...)
			delete(m.prepared, name)
			m.note("commit prepared %s", p.events[0].key)
		}
		return
	}
	for i := range modelKeys {
		p := m.producers[key((i+m.random.IntN(modelKeys))%modelKeys)]
		if p == nil {
			continue
		}
		delete(m.producers, keyOf(m.producers, p))
		switch n := m.random.IntN(10); {
		case n == 0:
			if err := p.tx.Rollback(m.Context()); err != nil {
				m.Fatal(err)
			}
			m.note("rollback")
		case n == 1 && len(p.events) > 0:
			name := uuid.NewString()
			m.inTx(p, `PREPARE TRANSACTION '`+name+`'`)
			_ = p.tx.Rollback(m.Context()) // it is no longer this session's
			m.prepared[name] = p
			m.note("prepare %s", p.events[0].key)
		default:
			p.commit()
			m.note("commit")
		}
		return
	}
}

func keyOf(producers map[string]*producer, p *producer) string {
	for key, other := range producers {
		if other == p {
			return key
		}
	}
	return ""
}

func (m *model) relay() *modelRelay { return m.relays[m.random.IntN(len(m.relays))] }

func (m *model) claimSome() {
	m.Helper()
	relay := m.relay()
	batch, err := relay.store.Claim(m.Context(), outbox.ClaimRequest{Limit: 1 + m.random.IntN(8)})
	if err != nil {
		m.note("claim: %v", err) // somebody was killed
		return
	}
	if len(batch.Messages()) == 0 {
		batch.Abandon()
		return
	}
	m.note("claim %v", idsOf(batch))
	relay.out = append(relay.out, batch)
}

// settleSome publishes a batch, one after the other of a key, and settles it.
func (m *model) settleSome() {
	m.Helper()
	relay := m.relay()
	if len(relay.out) == 0 {
		return
	}
	batch := relay.out[0]
	relay.out = relay.out[1:]
	outcomes := make([]outbox.Outcome, len(batch.Messages()))
	stopped := make(map[string]bool)
	away := m.random.IntN(8) == 0
	for i, message := range batch.Messages() {
		switch n := m.random.IntN(10); {
		case stopped[message.Key]:
			outcomes[i] = released
		case away && n < 5:
			outcomes[i] = released
			stopped[message.Key] = true
		case n == 0:
			outcomes[i] = failedNow
			stopped[message.Key] = true
		default:
			outcomes[i] = delivered
		}
	}
	m.publish(batch, outcomes...)
	lost, err := batch.Settle(m.Context(), outcomes)
	batch.Abandon()
	m.note("settle %v: lost %v, %v", kindsOf(outcomes), lost, err)
	if err != nil {
		lost = idsOf(batch)
	}
	m.excuse(lost...)
}

func kindsOf(outcomes []outbox.Outcome) string {
	var list []string
	for _, outcome := range outcomes {
		list = append(list, outcome.Kind.String())
	}
	return strings.Join(list, " ")
}

// excuse lets events come twice: what became of them could not be written.
func (m *model) excuse(ids ...uuid.UUID) {
	for _, id := range ids {
		m.excused[id] = true
	}
}

// excuseAll is for what a store remembers only in memory.
func (m *model) excuseAll() { m.excuse(m.published...) }

func (m *model) join() {
	m.Helper()
	if len(m.relays) < 3 {
		m.relays = append(m.relays, &modelRelay{store: m.open(Config{Connections: 2 + m.random.IntN(3)})})
		m.note("join")
	}
}

// drop takes a relay out; what it had out was published, but that was not written.
func (m *model) drop() *modelRelay {
	i := m.random.IntN(len(m.relays))
	relay := m.relays[i]
	m.relays = append(m.relays[:i:i], m.relays[i+1:]...)
	for _, batch := range relay.out {
		m.publish(batch)
		m.excuse(idsOf(batch)...)
		batch.Abandon()
	}
	return relay
}

// leave is the end of a relay as it should be.
func (m *model) leave() {
	m.Helper()
	if len(m.relays) < 2 {
		return
	}
	relay := m.drop()
	m.excuseAll() // it may remember what was delivered behind a released event
	m.note("leave")
	if err := relay.store.Leave(m.Context()); err != nil {
		m.note("leave: %v", err)
	}
}

// kill is the end of a relay as it should not be; the lease ends later.
func (m *model) kill() {
	m.Helper()
	if len(m.relays) < 2 {
		return
	}
	relay := m.drop()
	relay.store.AwaitReadAhead()
	m.excuseAll()
	m.note("kill")
}

// pass lets all leases end.
func (m *model) pass() {
	m.Helper()
	m.expire()
	for _, relay := range m.relays {
		relay.store.PassTime()
	}
	m.excuseAll()
	m.note("the leases end")
}

// terminate ends all sessions of the stores.
func (m *model) terminate() {
	m.Helper()
	for _, relay := range m.relays {
		pid := 0
		relay.store.reading <- struct{}{}
		if relay.store.reader != nil {
			pid = int(relay.store.reader.conn.Conn().PgConn().PID())
		}
		relay.store.doneReading()
		m.exec(`SELECT pg_terminate_backend($1)`, pid)
	}
	m.excuseAll()
	m.note("sessions end")
}

func (m *model) sweep() {
	m.Helper()
	if _, err := m.relay().store.Sweep(m.Context()); err != nil {
		m.note("sweep: %v", err)
	}
}

// finish ends all transactions and has the relays deliver what is left.
func (m *model) finish() {
	m.Helper()
	for _, p := range m.producers {
		p.commit()
	}
	for name, p := range m.prepared {
		m.exec(`COMMIT PREPARED '` + name + `'`)
		m.committed = append(m.committed, p.events...)
	}
	for _, relay := range m.relays {
		for _, batch := range relay.out {
			m.publish(batch)
			if _, err := batch.Settle(m.Context(), repeat(delivered, len(batch.Messages()))); err != nil {
				m.excuse(idsOf(batch)...)
			}
			batch.Abandon()
		}
	}
	for round := 0; m.story()[lost] != nil && round < 200; round++ {
		if round == 100 {
			m.pass() // those of relays that were killed
		}
		m.ripen()
		for _, relay := range m.relays {
			relay.store.PassTime()
			batch, err := relay.store.Claim(m.Context(), outbox.ClaimRequest{Limit: 10})
			if err != nil {
				m.note("claim: %v", err)
				continue
			}
			m.publish(batch)
			gone, err := batch.Settle(m.Context(), repeat(delivered, len(batch.Messages())))
			batch.Abandon()
			if m.excuse(gone...); err != nil {
				m.excuse(idsOf(batch)...)
			}
		}
	}
	m.verdict()
}

func (m *model) verdict() {
	m.Helper()
	story := m.story()
	times := make(map[uuid.UUID]int)
	for _, id := range m.published {
		times[id]++
	}
	delete(story, repeated)
	for i, e := range m.committed {
		if times[e.id] > 1 && !m.excused[e.id] {
			story[repeated] = append(story[repeated], fmt.Sprintf("event %d %s (key %q)", i, e.id, e.key))
		}
	}
	if len(story) > 0 {
		m.Errorf("of %d events: %v\n%s", len(m.committed), story, strings.Join(m.log, "\n"))
	}
	m.Logf("%d events, %d deliveries, %d steps", len(m.committed), len(m.published), len(m.log))
}
